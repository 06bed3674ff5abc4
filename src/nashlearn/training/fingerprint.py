"""Fingerprints of data and parameters: equal for equal values, other for others, from one process to the next.

Functions count by what they do: their code, constants and defaults, the values they enclose and the globals they name;
those of an importable module by its name, their code and the plain values they name, not by the functions they call.
Other objects count by what pickling them would keep, with the code of their class. Sets count without an order. What
has no such description, as a file or a lock, is refused.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator, Mapping
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
from scipy import sparse

__all__ = ["fingerprint"]

_PLAIN = (str, float, int, bool, type(None), complex, bytes, type(Ellipsis))


def fingerprint(*parts: Any) -> str:
    """A digest of values. Reads everything once; an error where some value cannot be told from others."""
    reader = _Reader()
    for part in parts:
        reader.feed(part)
    return reader.digest.hexdigest()


def _importable(part: Any) -> bool:
    """Whether another process finds the same under the same name. What a script itself defines may change with it."""
    module, name = getattr(part, "__module__", None), getattr(part, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str) or module == "__main__":
        return False
    found: Any = sys.modules.get(module)
    for step in name.split("."):
        found = getattr(found, step, None)
    return found is part


def _names(code: CodeType) -> Iterator[str]:
    """Names of globals and attributes in a code and those within it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


class _Reader:
    """Adds values to a digest, each with its kind, so that no two different values read the same."""

    def __init__(self) -> None:
        self.digest = hashlib.sha256()
        self._within: list[int] = []  # what is being read: a value may hold itself
        self._classes: dict[type, str] = {}

    def feed(self, part: Any) -> None:
        if type(part) in _PLAIN or isinstance(part, np.generic):
            self._say(f"{type(part).__name__} {part!r}")
        elif id(part) in self._within:
            self._say(f"again {len(self._within) - self._within.index(id(part))}")
        else:
            self._within.append(id(part))
            self._feed(part)
            self._within.pop()

    def _say(self, text: str) -> None:
        self.digest.update(f"{text}\n".encode("utf-8", "surrogatepass"))

    def _feed(self, part: Any) -> None:
        if sparse.issparse(part):
            part = part.tocsr()
            self.feed(("csr", part.shape, part.data, part.indices, part.indptr))
        elif isinstance(part, np.ndarray) and not part.dtype.hasobject:
            self._say(f"array {part.dtype.str} {part.shape}")
            self.digest.update(np.ascontiguousarray(part).data.cast("B") if part.size else b"")
        elif isinstance(part, np.ndarray) and part.ndim == 0:
            self.feed(("object", part.item()))
        elif isinstance(part, list | tuple | np.ndarray):
            self._many("list", part)
        elif isinstance(part, Mapping):
            self._many("mapping", list(part.items()))
        elif isinstance(part, set | frozenset):
            self._many("set", sorted(fingerprint(item) for item in part))
        elif isinstance(part, type):
            self._class(part)
        elif isinstance(part, ModuleType):
            self._say(f"module {part.__name__}")
        elif isinstance(part, FunctionType):
            self._function(part, _importable(part))
        elif hasattr(part, "to_numpy"):
            self.feed(part.to_numpy())
        else:
            self._object(part)

    def _many(self, kind: str, items: Any) -> None:
        self._say(f"{kind} {len(items)}")
        for item in items:
            self.feed(item)

    def _function(self, part: FunctionType, known: bool) -> None:
        """``known``: of a module, whose other functions are what its name says."""
        self._say(f"function {part.__module__}.{part.__qualname__}" if known else "function")
        self._code(part.__code__)
        self.feed((part.__defaults__, part.__kwdefaults__))
        for cell in part.__closure__ or ():
            try:
                value = cell.cell_contents
            except ValueError:  # not assigned yet
                self._say("empty cell")
            else:
                self.feed(value)
        used = {name: part.__globals__[name] for name in sorted({*_names(part.__code__)} & part.__globals__.keys())}
        if known:
            used = {k: v for k, v in used.items() if type(v) in _PLAIN or isinstance(v, np.ndarray | np.generic)}
        self.feed(used)

    def _code(self, code: CodeType) -> None:
        self.feed((code.co_code, code.co_names, code.co_varnames, code.co_freevars, code.co_flags, code.co_argcount))
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                self._code(constant)
            else:
                self.feed(constant)

    def _class(self, part: type) -> None:
        """Its name, and the code and plain values of it and of those that it inherits from."""
        if part not in self._classes:
            reader, known = _Reader(), _importable(part)
            reader._classes = {**self._classes, part: "itself"}
            reader._say(f"class {part.__module__}.{part.__qualname__}")
            for name, value in sorted(vars(part).items()):
                value = getattr(value, "__func__", getattr(value, "fget", value))  # of methods and properties
                if isinstance(value, FunctionType):
                    reader._say(name)
                    reader._function(value, known)
                elif type(value) in _PLAIN and not (name.startswith("__") and name.endswith("__")):
                    reader.feed((name, value))
            for base in part.__bases__:
                reader.feed(base)
            self._classes[part] = reader.digest.hexdigest()
        self._say(f"class {self._classes[part]}")

    def _object(self, part: Any) -> None:
        """By its reduction, as pickling and copying have it: a callable, arguments and the state."""
        owner = getattr(part, "__self__", None)
        if isinstance(part, BuiltinFunctionType) and not isinstance(owner, ModuleType | type(None)):
            self.feed(("method", part.__name__, owner))
            return
        if isinstance(part, np.ufunc) and any(part is one for one in vars(np).values()):  # of no module before NumPy 2
            self._say(f"known numpy.{part!r}")
            return
        if _importable(part):
            self._say(f"known {part.__module__}.{part.__qualname__}")
            self.feed(getattr(part, "__wrapped__", None))
            return
        try:
            reduced = part.__reduce_ex__(4)
        except Exception as error:  # whatever a class may raise in place of a description
            raise _refusal(part) from error
        if isinstance(reduced, str):
            raise _refusal(part)
        make, arguments, state, items, pairs = (*reduced, None, None, None)[:5]
        self.feed(("object", type(part), make, arguments, state, list(items or ()), list(pairs or ())))


def _refusal(part: Any) -> ValueError:
    return ValueError(
        f"checkpoint must be None here: a parameter or the data hold {part!r:.80}, which cannot be described, so its "
        "checkpoint could not be told from that of another."
    )
