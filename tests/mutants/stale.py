"""Which files that Numba has cached do not belong to the source.

Numba looks at the file of a function alone. What the function calls, from other files, is compiled into it: where only
that changes, the cache is stale and nobody notices.
"""

from __future__ import annotations

import ast
import math
from pathlib import Path

__all__ = ["drop_stale", "imports"]

_REGISTERS = ("overload", "implements", "where")  # what makes a function the compiled version of another


def imports(source: Path) -> dict[str, set[str]]:
    """For each module below the folder ``source`` those that its compiled code may depend on.

    They are the modules that it imports, and those that register implementations of its functions.
    """
    files = {_name(path, source): path for path in source.rglob("*.py")}
    found: dict[str, set[str]] = {name: set() for name in files}
    for name, path in files.items():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        origin = dict(_imported(tree, files))
        found[name] |= set(origin.values())
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _REGISTERS:
                target = node.args[0]
                local = target.value if isinstance(target, ast.Attribute) else target
                if isinstance(local, ast.Name) and local.id in origin:
                    found[origin[local.id]].add(name)
    return found


def _name(path: Path, source: Path) -> str:
    parts = path.relative_to(source).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imported(tree: ast.Module, files: dict[str, Path]) -> list[tuple[str, str]]:
    """Local names with the module of the library that each comes from."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                module = inner if inner in files else node.module
                found.append((alias.asname or alias.name, module))
        elif isinstance(node, ast.Import):
            found += [(alias.asname or alias.name, alias.name) for alias in node.names]
    return [(local, module) for local, module in found if module in files]


def _compiled(path: Path) -> float:
    """When a file was written, if it has compiled code."""
    text = path.read_text(encoding="utf-8")
    return path.stat().st_mtime if "numba" in text or "@implements" in text else -math.inf


def drop_stale(source: Path) -> int:
    """Remove what Numba has cached before something that it depends on was written; the number of files.

    Files without compiled code hold nothing that is compiled into others.
    """
    graph, dropped = imports(source), 0
    written = {_name(path, source): _compiled(path) for path in source.rglob("*.py")}
    for name in graph:
        reached, waiting = {name}, [name]
        while waiting:
            new = graph[waiting.pop()] - reached
            reached |= new
            waiting += new
        newest = max(written[module] for module in reached)
        *folders, stem = name.split(".")
        for cached in (source.joinpath(*folders) / "__pycache__").glob(f"{stem}.*.nb[ic]"):
            if cached.stat().st_mtime <= newest:
                cached.unlink()
                dropped += 1
    return dropped
