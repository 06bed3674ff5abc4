"""Arrays as compiled code needs them."""

from __future__ import annotations

from dataclasses import is_dataclass
from typing import Any

import numpy as np

__all__ = ["aligned"]


def aligned(value: Any) -> Any:
    """The same with arrays whose numbers lie at whole addresses, also those in lists, tuples, records and matrices.

    What was sent from another process may lie anywhere in its message; such arrays are copied, others are not. Records
    and sparse matrices are changed in place.
    """
    if isinstance(value, np.ndarray):
        return value if value.flags.aligned else value.copy()
    if type(value) in (list, tuple):
        return type(value)(map(aligned, value))
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(aligned, value))
    names: tuple[str, ...] = ("data", "indices", "indptr") if hasattr(value, "indptr") else ()
    if is_dataclass(value) and hasattr(value, "__dict__"):
        names = tuple(vars(value))
    for name in names:
        object.__setattr__(value, name, aligned(getattr(value, name)))
    return value
