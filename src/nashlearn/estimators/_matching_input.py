"""What users pass to :class:`NashMatcher`, checked: examples of pairs and their matchings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nashlearn.training.designs.pairs import Example

__all__ = ["PARTS", "assignments", "common_widths", "completed", "examples", "refuse_impossible"]

PARTS = ("pairs", "leave", "enter")


def examples(X: Any) -> list[Example]:
    """The examples of ``X`` as arrays, each checked by itself."""
    if isinstance(X, str) or not isinstance(X, Sequence | np.ndarray):
        raise TypeError(f"X must be a list of examples, arrays (n1, n2, d) or tuples; got {type(X).__name__}.")
    if not len(X):
        raise ValueError("X must hold at least one example; it is empty.")
    return [_example(one, f"X[{i}]") for i, one in enumerate(X)]


def _example(one: Any, where: str) -> Example:
    parts = tuple(one) if isinstance(one, tuple) else (one,)
    if len(parts) not in (1, 3, 4):
        raise ValueError(
            f"{where} must be an array (n1, n2, d) or a tuple (pairs, leave, enter) or (pairs, leave, enter, allowed); "
            f"got a tuple of {len(parts)}."
        )
    pairs, leave, enter, allowed = (*parts, None, None, None)[:4]
    pairs = _numbers(pairs, 3, f"{where}, pair features")
    n1, n2, _ = pairs.shape
    if (leave is None) != (enter is None):
        raise ValueError(f"{where} must have features of both leaving and entering, or of neither.")
    if leave is not None:
        leave, enter = _numbers(leave, 2, f"{where}, leave features"), _numbers(enter, 2, f"{where}, enter features")
        if (len(leave), len(enter)) != (n1, n2):
            raise ValueError(
                f"{where} pairs {n1} with {n2} elements; leave features must have {n1} rows and enter features {n2}, "
                f"got {len(leave)} and {len(enter)}."
            )
    if allowed is not None:
        allowed = np.asarray(allowed)
        if allowed.shape != (n1, n2) or allowed.dtype != bool:
            raise ValueError(
                f"{where}: allowed must be a mask of shape {(n1, n2)}; got {allowed.dtype} of shape {allowed.shape}."
            )
    return Example(pairs, leave, enter, allowed)


def _numbers(features: Any, ndim: int, where: str) -> np.ndarray:
    shape = "(n1, n2, d)" if ndim == 3 else "(n, d)"
    try:
        array = np.asarray(features)
        if array.dtype.kind == "c":
            raise TypeError
        array = array.astype(np.float64, copy=False)
    except (TypeError, ValueError):
        raise ValueError(f"{where} must be numbers of shape {shape}; they are not an array of real numbers.") from None
    if array.ndim != ndim or array.shape[-1] < 1:
        raise ValueError(f"{where} must have shape {shape} with at least one feature; got {array.shape}.")
    if not np.isfinite(array).all():
        raise ValueError(
            f"{where} must be finite; they hold NaN or infinity. Forbid a pair through the mask `allowed`."
        )
    return array


def completed(example: Example, partial: bool) -> Example:
    """The example with constant features for staying alone where it lacks them and elements may."""
    if not partial or example.partial:
        return example
    n1, n2, _ = example.pairs.shape
    return example._replace(leave=np.ones((n1, 1)), enter=np.ones((n2, 1)))


def common_widths(examples: Sequence[Example]) -> list[int]:
    """Numbers of pair, leave and enter features, which all examples must share."""
    widths = [[part.shape[-1] for part in example[:3] if part is not None] for example in examples]
    for i, width in enumerate(widths):
        for name, first, here in zip(PARTS, widths[0], width, strict=False):
            if here != first:
                raise ValueError(f"X[{i}] has {here} {name} features, X[0] has {first}; all examples need the same.")
    return widths[0]


def assignments(y: Any, examples: Sequence[Example]) -> list[np.ndarray]:
    """The labels of each example as integers: distinct partners, or -1."""
    if isinstance(y, str) or not isinstance(y, Sequence | np.ndarray):
        raise TypeError(f"y must be a list of arrays, the partners of each example's left elements; got {y!r}.")
    if len(y) != len(examples):
        raise ValueError(f"X and y must have the same length; got {len(examples)} examples and {len(y)} labels.")
    answers = []
    for i, (one, example) in enumerate(zip(y, examples, strict=True)):
        n1, n2, _ = example.pairs.shape
        try:
            partners = np.asarray(one)
        except ValueError:
            raise ValueError(f"y[{i}] must be one list of partners; it has parts of unequal length.") from None
        if partners.shape != (n1,):
            raise ValueError(
                f"y[{i}] must hold one partner for each of the {n1} left elements of X[{i}]; shape {partners.shape}."
            )
        if n1 and partners.dtype.kind not in "iu":
            raise ValueError(f"y[{i}] must hold integers, partners 0..{n2 - 1} or -1; got dtype {partners.dtype}.")
        partners = partners.astype(np.int64)
        if ((partners < -1) | (partners >= n2)).any():
            wrong = partners[(partners < -1) | (partners >= n2)][0]
            raise ValueError(f"y[{i}] must hold partners 0..{n2 - 1}, or -1 for none; got {wrong}.")
        ordered = np.sort(partners[partners >= 0])
        twice = ordered[1:] == ordered[:-1]
        if twice.any():
            raise ValueError(f"y[{i}] is not a matching: it has the partner {ordered[1:][twice][0]} more than once.")
        answers.append(partners)
    return answers


def refuse_impossible(examples: Sequence[Example], answers: Sequence[np.ndarray] | None = None) -> None:
    """Raise where a mask forbids the true matching, or every one."""
    for i, example in enumerate(examples):
        if not (example.partial or example.pairs.shape[0]):
            raise ValueError(f"X[{i}] has no elements; a complete matching needs at least one pair.")
        if example.allowed is None:
            continue
        if not example.partial:
            alone = np.flatnonzero(~example.allowed.any(axis=1))
            if alone.size:
                raise ValueError(f"X[{i}] forbids every partner of left element {alone[0]}, which must have one.")
            alone = np.flatnonzero(~example.allowed.any(axis=0))
            if alone.size:
                raise ValueError(f"X[{i}] forbids every partner of right element {alone[0]}, which must have one.")
            if not _matchable(example.allowed):
                raise ValueError(f"X[{i}] leaves no complete matching: its mask forbids every one.")
        if answers is not None:
            left = np.flatnonzero(answers[i] >= 0)
            broken = left[~example.allowed[left, answers[i][left]]]
            if broken.size:
                raise ValueError(
                    f"y[{i}] matches left element {broken[0]} with {answers[i][broken[0]]}, a pair that X[{i}] forbids."
                )


def _matchable(allowed: np.ndarray) -> bool:
    """Whether a complete matching of allowed pairs exists."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import maximum_bipartite_matching

    return bool((maximum_bipartite_matching(csr_matrix(allowed), perm_type="column") >= 0).all())
