"""The README's code runs, all of it, in order, as a reader would run it."""

from __future__ import annotations

import re
from pathlib import Path

README = Path(__file__).resolve().parents[1] / "README.md"


def test_every_python_block_of_the_readme_runs(tmp_path, monkeypatch):
    text = README.read_text(encoding="utf-8")
    blocks = list(re.finditer(r"^```python[^\n]*\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE))
    assert blocks
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    for block in blocks:
        line = text[: block.start(1)].count("\n")
        code = "\n" * line + block.group(1)  # so that a traceback names the README's own line
        exec(compile(code, str(README), "exec"), namespace)
