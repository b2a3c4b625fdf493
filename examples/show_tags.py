"""Shows tagged sentences to a person: reads `xbert predict`'s JSON lines, and the sentences from the file named."""

import json
import sys
from pathlib import Path

for sentence, line in zip(Path(sys.argv[1]).read_text("utf-8").splitlines(), sys.stdin, strict=True):
    tags = json.loads(line)["labels"]
    print(f"\n  {sentence}")
    for tag in tags:
        print(f"    {tag['score']:.3f}  {tag['text']}")
