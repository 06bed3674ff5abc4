"""Arrays as compiled code needs them."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["aligned"]


def aligned(value: Any) -> Any:
    """The same with arrays whose numbers lie at whole addresses: those in lists, tuples, matrices and models too.

    What was sent from another process may lie anywhere in its message; such arrays are copied, others are not. Sparse
    matrices and the library's own objects are changed in place.
    """
    return _aligned(value, set())


def _aligned(value: Any, seen: set[int]) -> Any:
    """``seen`` holds the objects that were looked at: they may refer to each other."""
    if isinstance(value, np.ndarray):
        return value if value.flags.aligned else value.copy()
    if type(value) in (list, tuple):
        return type(value)(_aligned(part, seen) for part in value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_aligned(part, seen) for part in value))
    if hasattr(value, "indptr"):
        value.data, value.indices, value.indptr = _aligned([value.data, value.indices, value.indptr], seen)
    elif hasattr(value, "__dict__") and id(value) not in seen:
        seen.add(id(value))
        if any(kind.__module__.startswith("nashlearn.") for kind in type(value).__mro__):
            for name, part in list(vars(value).items()):
                vars(value)[name] = _aligned(part, seen)
    return value
