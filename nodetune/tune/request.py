"""The common request of all subjects of `nodetune tune`: budget and result file."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class StudyRequest:
    """`budget` is in seconds. Without `save`, the file of the result has the name of its subject."""

    budget: float = 1200.0
    save: Path | None = None
    resume: bool = False
    history: str = ""

    def file(self, subject: str) -> Path:
        """Return the file of the result."""
        return self.save or Path(f"tuning-{subject}.json")
