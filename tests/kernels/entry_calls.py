"""Calls of the compiled functions as the library makes them, found by listening to it.

An entry is whatever Python can call in ``nashlearn.kernels``: functions, constructors and methods. All are found by
looking at the modules, so that a new one is heard, and later abused, without being named here; what the library does
meanwhile is in :mod:`entry_plays`.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import pickle
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Call", "Entry", "Made", "entries", "heard", "rebuilt", "record"]

ROOM = Path(__file__).resolve().parents[2] / "src" / "nashlearn" / "kernels"
_PER_SHAPE, _PER_ENTRY, _LARGEST = 2, 24, 20_000  # calls that are kept, and numbers in one of them


class Entry(NamedTuple):
    """A function, with the names of its parameters; methods take the object first."""

    name: str
    function: Callable[..., Any]
    parameters: tuple[str, ...]


class Made(NamedTuple):
    """An object of the kernels: the entry that made it, and the arguments."""

    entry: str
    arguments: tuple[Any, ...]


class Call(NamedTuple):
    """A call that was heard: arguments before and after, and what was returned."""

    entry: str
    arguments: tuple[Any, ...]
    after: tuple[Any, ...]
    returned: Any


def _compiled(value: Any) -> bool:
    return type(value).__name__ == "cython_function_or_method"


def _constructors(text: str) -> dict[str, tuple[str, ...]]:
    """Names of the parameters of constructors, by class: Python does not tell them."""
    found, own, above = {}, {}, {}
    for one in re.finditer(
        r"^cdef class (\w+)(?:\((\w+)\))?:|^    def __cinit__\(\s*self,?([^)]*)\)", text, re.MULTILINE
    ):
        if one[1]:
            name, above[one[1]] = one[1], one[2]
            found[name] = ()
        else:
            parts = [re.sub(r"=.*| not None", "", part).split() for part in one[3].split(",") if part.strip()]
            own[name] = tuple(part[-1] for part in parts)
    for name in found:
        base = name
        while base in above and base not in own:
            base = above[base]
        found[name] = own.get(base, ())
    return found


@functools.cache
def entries() -> dict[str, Entry]:
    """Everything in the kernels that Python can call, by name."""
    found, paths = {}, sorted(ROOM.glob("*.pyx"))
    constructors = _constructors("\n".join(path.read_text(encoding="utf-8") for path in paths))
    for path in paths:
        module = importlib.import_module(f"nashlearn.kernels.{path.stem}")
        for name, value in vars(module).items():
            if _compiled(value) and not name.startswith("_"):
                found[f"{path.stem}.{name}"] = Entry(f"{path.stem}.{name}", value, _names(value))
            elif isinstance(value, type) and value.__module__ == module.__name__:
                whole = f"{path.stem}.{name}"
                found[whole] = Entry(whole, value, constructors[name])
                for method, function in _methods(value):
                    found[f"{whole}.{method}"] = Entry(f"{whole}.{method}", function, _names(function))
    return found


def _names(function: Callable[..., Any]) -> tuple[str, ...]:
    return tuple(inspect.signature(function).parameters)


def _methods(kind: type) -> Iterator[tuple[str, Any]]:
    for name, value in vars(kind).items():
        if _compiled(value) and not name.startswith("__"):
            yield name, value


def rebuilt(value: Any, parts: Iterable[Any]) -> Any:
    """A tuple or list of the same type, with other parts."""
    return value._make(parts) if hasattr(value, "_make") else type(value)(parts)


def _kept(value: Any) -> Any:
    """A copy of an argument that lasts: arrays as they are now, objects as what they were made of."""
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, tuple | list):
        return rebuilt(value, map(_kept, value))
    for kind in type(value).__mro__:
        if kind.__module__.startswith("nashlearn.kernels."):
            return Made(f"{kind.__module__.rpartition('.')[2]}.{kind.__name__}", _kept(value.__reduce__()[1]))
    return value


def _shape(value: Any) -> Any:
    """What makes a call another one than those before it."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, tuple(min(size, 2) for size in value.shape)
    if isinstance(value, Made):
        return value.entry, tuple(map(_shape, value.arguments))
    if isinstance(value, tuple | list):
        return tuple(map(_shape, value))
    return type(value).__name__


def _numbers(value: Any) -> int:
    if isinstance(value, np.ndarray):
        return value.size
    if isinstance(value, tuple | list):  # what was made, too
        return sum(map(_numbers, value))
    return 1


class _Listener:
    """Put between the library and its kernels, before the library is imported."""

    def __init__(self) -> None:
        self.calls: dict[str, list[Call]] = {name: [] for name in entries()}
        self.shapes: dict[Any, int] = {}
        for name, entry in entries().items():
            stem, own, *method = name.split(".")
            module = sys.modules[f"nashlearn.kernels.{stem}"]
            if isinstance(entry.function, type):
                setattr(module, own, self._class(entry))
            elif not method:
                setattr(module, own, self._function(entry))

    def _function(self, entry: Entry) -> Callable[..., Any]:
        @functools.wraps(entry.function)
        def call(*arguments: Any, **named: Any) -> Any:
            given = (*arguments, *(named[name] for name in entry.parameters[len(arguments) :] if name in named))
            before = self._before(entry, given) if len(given) == len(arguments) + len(named) else None
            returned = entry.function(*arguments, **named)
            if before is not None:
                after = tuple(map(_kept, given))
                self.calls[entry.name].append(Call(entry.name, before, after, _kept(returned)))
            return returned

        return call

    def _class(self, entry: Entry) -> type:
        kind: Any = entry.function
        listener = self

        class Heard(kind):
            def __new__(cls, *arguments: Any) -> Any:
                before = listener._before(entry, arguments)
                if before is not None:
                    listener.calls[entry.name].append(Call(entry.name, before, before, None))
                return kind.__new__(cls, *arguments)

        for base in kind.__mro__:
            for method, _ in _methods(base) if base is not object else ():
                whole = f"{base.__module__.rpartition('.')[2]}.{base.__name__}.{method}"
                if method not in vars(Heard) and whole in entries():
                    setattr(Heard, method, self._function(entries()[whole]))
        return Heard

    def _before(self, entry: Entry, given: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """The arguments, if calls like this one are still wanted."""
        if len(self.calls[entry.name]) >= _PER_ENTRY or any(getattr(value, "taken", 0) for value in given):
            return None  # steps that have learnt from others are no function of what they were made of
        kept = tuple(map(_kept, given))
        key = entry.name, tuple(map(_shape, kept))
        if self.shapes.get(key, 0) >= _PER_SHAPE or sum(map(_numbers, kept)) > _LARGEST:
            return None
        self.shapes[key] = self.shapes.get(key, 0) + 1
        return kept


def record(path: Path) -> None:
    """Play, and write the calls that were heard; for a process that has not imported the library yet."""
    listener = _Listener()
    sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "games")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        importlib.import_module("entry_plays").play()
    path.write_bytes(pickle.dumps([call for calls in listener.calls.values() for call in calls]))


def heard(path: Path) -> list[Call]:
    """Calls that :func:`record` has written."""
    return pickle.loads(path.read_bytes())


if __name__ == "__main__":
    # Under the name that readers of the file know the classes by.
    importlib.import_module("entry_calls").record(Path(sys.argv[1]))
