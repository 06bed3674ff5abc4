"""The rooms of the library: imports go one way, whether at the top of a module or inside a function."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "nashlearn"

# From the ground up: a module may import from its own level and from those below.
LEVELS = (
    ("equilibrium", "kernels"),
    ("solvers",),
    ("game",),
    ("games",),
    ("training",),
    ("dask",),
    ("estimators",),
)
OUTSIDE = ("torch", "report", "cli", "onnx")  # nothing below may know them


def compiled_imports(text: str) -> str:
    """The imports of a Cython module, as Python has them."""
    lines = re.findall(r"^\s*(from \S+ c?import|c?import \S+)", text, re.MULTILINE)
    return "\n".join(f"import {line.split()[1]}" for line in lines)


def modules() -> dict[str, ast.Module]:
    """The syntax trees of all modules, by their names; of compiled ones no more than their imports."""
    found = {}
    for path in sorted(SOURCE.rglob("*.pyx")):
        name = ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts)
        found[name] = ast.parse(compiled_imports(path.read_text()))
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = ast.parse(path.read_text())
    return found


def _statements(node: ast.AST) -> Iterable[ast.Import | ast.ImportFrom]:
    """Imports under a node, but for those that only a type checker reads."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child
        elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            for other in child.orelse:
                yield from _statements(other)
        else:
            yield from _statements(child)


def import_graph(trees: dict[str, ast.Module]) -> dict[str, set[str]]:
    """Which modules of the library each module imports; a name that is no module belongs to its package."""
    graph: dict[str, set[str]] = {}
    for name, tree in trees.items():
        wanted = set()
        for statement in _statements(tree):
            if isinstance(statement, ast.Import):
                wanted |= {alias.name for alias in statement.names}
            else:
                assert statement.level == 0, f"{name} has a relative import"
                inside = {f"{statement.module}.{alias.name}" for alias in statement.names}
                wanted |= {path if path in trees else str(statement.module) for path in inside}
        graph[name] = {path for path in wanted if path in trees} - {name}
    return graph


def cycle(graph: dict[str, set[str]]) -> list[str] | None:
    """The modules of some cycle, in order, or None."""
    done: set[str] = set()

    def search(name: str, above: list[str]) -> list[str] | None:
        if name in above:
            return above[above.index(name) :]
        if name in done:
            return None
        for other in sorted(graph.get(name, ())):
            if (found := search(other, [*above, name])) is not None:
                return found
        done.add(name)
        return None

    return next((found for name in sorted(graph) if (found := search(name, [])) is not None), None)


def room(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def upward(graph: dict[str, set[str]]) -> list[tuple[str, str]]:
    """Imports from a level above the module's own."""
    level = {name: height for height, names in enumerate(LEVELS) for name in names}
    level |= dict.fromkeys(OUTSIDE, len(LEVELS))
    return [
        (module, other)
        for module, others in sorted(graph.items())
        for other in sorted(others)
        if level.get(room(module), len(LEVELS)) < level.get(room(other), 0)
    ]


@pytest.fixture(scope="module")
def graph() -> dict[str, set[str]]:
    return import_graph(modules())


def test_there_is_no_cycle(graph):
    assert (found := cycle(graph)) is None, " -> ".join(found)


def test_imports_go_down(graph):
    assert upward(graph) == []


def test_every_level_is_there(graph):
    """Else the test above would say nothing of it."""
    rooms = {room(module) for module in graph}
    assert {name for names in (*LEVELS, OUTSIDE) for name in names} <= rooms
    assert "nashlearn.solvers.double_oracle" in graph["nashlearn.game"]
    assert "nashlearn.kernels.loss" in graph["nashlearn.games.rows.game"]
    assert "nashlearn.kernels.loss" in graph["nashlearn.kernels.zero_one"]


def test_the_checks_can_fail():
    sources = {
        "nashlearn.solvers": "",
        "nashlearn.solvers.one": "def late():\n    from nashlearn.games import two\n",
        "nashlearn.games": "",
        "nashlearn.games.two": "import nashlearn.solvers.one\n",
    }
    wrong = import_graph({name: ast.parse(text) for name, text in sources.items()})
    assert cycle(wrong) == ["nashlearn.games.two", "nashlearn.solvers.one"]
    assert upward(wrong) == [("nashlearn.solvers.one", "nashlearn.games.two")]
    sources["nashlearn.solvers.one"] = (
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from nashlearn.games import two\n"
    )
    right = import_graph({name: ast.parse(text) for name, text in sources.items()})
    assert cycle(right) is None and upward(right) == []
