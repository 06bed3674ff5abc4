"""States of methods as arrays by name, and back: what a checkpoint holds of a run.

A state is a dataclass, or a NamedTuple, whose fields are arrays, numbers, lists of arrays of one shape, or states.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar, get_origin, get_type_hints

import numpy as np

__all__ = ["packed", "unpacked"]

S = TypeVar("S")


def _names(kind: Any) -> tuple[str, ...]:
    """The fields of a state, none where it is no state."""
    return tuple(one.name for one in fields(kind)) if is_dataclass(kind) else getattr(kind, "_fields", ())


def packed(state: Any, prefix: str = "") -> dict[str, np.ndarray]:
    """The fields of ``state`` as arrays; those of a state inside it are named after both."""
    arrays: dict[str, np.ndarray] = {}
    for name in _names(state):
        value = getattr(state, name)
        arrays |= packed(value, f"{prefix}{name}.") if _names(value) else {prefix + name: np.asarray(value)}
    return arrays


def unpacked(kind: type[S], arrays: Mapping[str, np.ndarray], prefix: str = "") -> S:
    """The state of this kind that :func:`packed` has taken apart."""
    hints, values = get_type_hints(kind), dict[str, Any]()
    for name in _names(kind):
        if _names(hints[name]):
            values[name] = unpacked(hints[name], arrays, f"{prefix}{name}.")
        else:
            array = arrays[prefix + name]
            values[name] = list(array) if get_origin(hints[name]) is list else array if array.ndim else array.item()
    return kind(**values)
