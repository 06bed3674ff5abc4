"""The list of mutants: one TOML file for each part of the library."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["ROOT", "Mutant", "complaints", "mutants"]

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Mutant:
    """A change of one file.

    Attributes
    ----------
    name : str
        Unique.
    file : str
        The file that changes, below ``src/nashlearn``.
    old, new : str
        What is replaced, which must occur exactly once, and by what.
    breaks : str
        What is wrong then.
    tests : list of str
        Tests, as pytest names them, one of which must fail.
    """

    name: str
    file: str
    old: str
    new: str
    breaks: str
    tests: list[str]

    @property
    def compiled(self) -> bool:
        """Whether the change is in what a compiler reads."""
        return not self.file.endswith(".py")

    def source(self, root: Path) -> Path:
        """The file below ``root``."""
        return root / "src" / "nashlearn" / self.file

    def changed(self, root: Path) -> str:
        """The text of the file below ``root`` after the change."""
        text = self.source(root).read_text(encoding="utf-8")
        if text.count(self.old) != 1:
            raise ValueError(
                f"{self.name}: the text to be changed must occur once in {self.file}; it occurs {text.count(self.old)} "
                f"times: {self.old!r}"
            )
        return text.replace(self.old, self.new)


def mutants() -> list[Mutant]:
    """All mutants, by file of the list."""
    found = []
    for path in sorted(Path(__file__).parent.glob("*.toml")):
        found += [Mutant(**entry) for entry in tomllib.loads(path.read_text(encoding="utf-8"))["mutant"]]
    return found


def parse(text: str, name: str) -> None:
    """Raise SyntaxError where a file is not in its language, Python or Cython; C is left to its compiler."""
    if name.endswith(".py"):
        compile(text, name, "exec")
    elif name.endswith((".pyx", ".pxd")):
        from Cython.Compiler.Errors import CompileError
        from Cython.Compiler.TreeFragment import parse_from_strings

        try:
            parse_from_strings(Path(name).stem, text, level="module_pxd" if name.endswith(".pxd") else None)
        except CompileError as error:
            raise SyntaxError(f"invalid syntax: {error.message_only}") from None


def complaints(listed: list[Mutant], root: Path = ROOT) -> Iterator[str]:
    """What is wrong with a list: nothing, if it can be run."""
    names = [mutant.name for mutant in listed]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"{name}: there are {names.count(name)} mutants of this name"
    for mutant in listed:
        if mutant.old == mutant.new:
            yield f"{mutant.name}: it changes nothing"
        if not (mutant.breaks and mutant.tests):
            yield f"{mutant.name}: what it breaks and the tests that notice must be named"
        try:
            parse(mutant.changed(root), mutant.file)
        except (OSError, SyntaxError, ValueError) as error:
            yield str(error) if mutant.name in str(error) else f"{mutant.name}: {error}"
        for test in mutant.tests:
            path, _, function = test.partition("::")
            function = function.partition("[")[0]
            if not (root / path).is_file():
                yield f"{mutant.name}: there is no {path}"
            elif f"def {function}(" not in (root / path).read_text(encoding="utf-8"):
                yield f"{mutant.name}: {path} has no test {function!r}"
