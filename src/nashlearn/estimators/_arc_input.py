"""What users pass to :class:`NashParser`, checked: sentences with features of their arcs or tokens, and heads."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from nashlearn.games.trees.arborescence import check_heads
from nashlearn.training.designs.arcs import TokenVectors, token_basis
from nashlearn.training.designs.entries import EntryFeatures, stacked
from nashlearn.training.missing_heads import completed

__all__ = ["Sentences", "sentences", "true_heads"]


class Sentences(NamedTuple):
    """Sentences of one kind: features of their arcs, or vectors of their tokens.

    Attributes
    ----------
    X : list of arrays (n, n + 1, d) or (n, d), or of sparse matrices (n (n + 1), d)
    sizes : ndarray
        Numbers of tokens.
    kind : tuple
        Number of dimensions, width and sparsity, which all sentences share.
    """

    X: list[Any]
    sizes: np.ndarray
    kind: tuple[int, int, bool]

    @property
    def bilinear(self) -> bool:
        """Whether tokens have vectors, and arcs no features of their own."""
        return self.kind[0] == 2 and not self.kind[2]

    def basis(self) -> np.ndarray | None:
        """Of the span of token vectors, where they are few; see :func:`nashlearn.training.designs.arcs.token_basis`."""
        return token_basis([np.concatenate(self.X).T]) if self.bilinear else None

    def design(self, basis: np.ndarray | None) -> TokenVectors | EntryFeatures:
        """How scores depend on the weights."""
        if self.bilinear:
            return TokenVectors(self.X, basis)
        return EntryFeatures([stacked(self.X)], np.concatenate([[0], np.cumsum(self.sizes * (self.sizes + 1))]))


def sentences(X: Any) -> Any:
    """Sentences with ``sizes``, ``kind``, ``basis()`` and ``design(basis)``, as hashed ones are; others are checked."""
    if hasattr(X, "design"):
        return X
    if len(X) == 0:
        raise ValueError("X holds no sentence.")
    given = [_sentence(x, f"X[{i}]") for i, x in enumerate(X)]
    kind = _kind(given[0][0])
    for i, (x, _) in enumerate(given):
        if _kind(x) != kind:
            raise ValueError(
                f"X[{i}] has shape {x.shape}, which differs in kind or width from X[0]: {given[0][0].shape}."
            )
    return Sentences([x for x, _ in given], np.array([n for _, n in given], dtype=np.int64), kind)


def _sentence(x: Any, where: str) -> tuple[Any, int]:
    """Features as a float64 array or CSR matrix, and the number of tokens."""
    if sparse.issparse(x):
        x = sparse.csr_array(x, dtype=np.float64)
        n, values = _arc_rows(x.shape[0]), x.data
        if n < 0:
            raise ValueError(f"{where} is sparse and must have n (n + 1) rows, one for each arc; it has {x.shape[0]}.")
    else:
        try:
            x = values = np.asarray(x, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{where} must be an array of numbers: {error}.") from None
        if x.ndim not in (2, 3) or (x.ndim == 3 and x.shape[1] != x.shape[0] + 1):
            raise ValueError(
                f"{where} must be arc features (n, n + 1, d), token vectors (n, d) or a sparse matrix of n (n + 1) "
                f"rows; got shape {x.shape}."
            )
        n = x.shape[0]
    if n == 0:
        raise ValueError(f"{where} is an empty sentence.")
    if not np.isfinite(values).all():
        raise ValueError(f"{where} holds NaN or infinite features.")
    return x, n


def _arc_rows(rows: int) -> int:
    """The ``n`` with ``n (n + 1) = rows``, or -1."""
    n = int(np.sqrt(rows))
    return n if n * (n + 1) == rows else -1


def _kind(x: Any) -> tuple[int, int, bool]:
    return x.ndim, x.shape[-1], sparse.issparse(x)


def true_heads(y: Any, sizes: np.ndarray, single_root: bool) -> list[np.ndarray]:
    """The heads of each sentence, -1 where missing, checked."""
    if len(y) != sizes.size:
        raise ValueError(f"y must hold the heads of each of the {sizes.size} sentences; got {len(y)}.")
    heads = []
    for i, (one, n) in enumerate(zip(y, sizes, strict=True)):
        tree = np.asarray(one)
        if tree.shape != (n,) or tree.dtype.kind not in "iu":
            raise ValueError(f"y[{i}] must hold {n} integers, a head for each token; got {one!r}.")
        heads.append(tree.astype(np.int64))
        _check_known(heads[-1], single_root, f"y[{i}]")
    return heads


def _check_known(heads: np.ndarray, single_root: bool, name: str) -> None:
    """Refuse heads that no tree has; -1 is missing."""
    n, known = heads.size, heads[heads >= 0]
    if known.size == n:
        check_heads(heads, single_root, name)
        return
    if (heads < -1).any() or (known > n).any():
        wrong = heads[(heads < -1) | (heads > n)][0]
        raise ValueError(f"{name} must hold heads 0 (the root) to {n}, or -1 where missing; got {wrong}")
    if completed(heads, single_root) is None:
        rule = ", more than one token at the root" if single_root else ""
        raise ValueError(f"{name} holds heads that no tree has: a cycle, a token that is its own head{rule}")
