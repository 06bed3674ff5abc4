"""Every work that a docstring cites is in the list of references, and the list holds no other."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_citations_and_references_agree():
    rooms = [ROOT / room for room in ("src", "reproduce", "benchmarks", "examples")]
    sources = [path for room in rooms for kind in ("*.py", "*.pyx") for path in room.rglob(kind)]
    cited = {key for path in sources for key in re.findall(r"\[([a-z]+\d{4})\]_", path.read_text(encoding="utf-8"))}
    listed = re.findall(
        r"^- \*\*\[([a-z]+\d{4})\]\*\*", (ROOT / "docs/references.md").read_text(encoding="utf-8"), re.M
    )
    assert sorted(listed) == listed == sorted(cited)
