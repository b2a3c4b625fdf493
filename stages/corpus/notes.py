"""What readers notice on their way and a person should hear of."""

from dataclasses import dataclass, field


@dataclass
class Notes:
    """Counted while reading, told at the end."""

    repeated_labels: int = 0  # a label listed again in one document: kept once
    unknown_parents: int = 0  # parents in the label file that are no labels: ignored
    warnings: list[str] = field(default_factory=list)
