"""Pages that several scripts write: each owns what stands between its two HTML comments, and leaves the rest alone."""

import re
from pathlib import Path


def put(page: Path, name: str, text: str, head: str = "") -> None:
    """Replace the section of that name, or add it at the end; a new page begins with `head`."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    section = f"{begin}\n{text.strip()}\n{end}"
    before = page.read_text("utf-8") if page.exists() else head
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    after = pattern.sub(lambda _: section, before) if pattern.search(before) else f"{before.rstrip()}\n\n{section}\n"
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(after.lstrip("\n"), "utf-8")
