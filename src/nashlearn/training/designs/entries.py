"""Scores that are linear in features of their entries: ``theta_i = X_i w``, one row of ``X_i`` for each entry.

Scores of all examples lie one after another, as :class:`nashlearn.games.batch.Batch` has them, so that a pass over the
data is two products with features that are stacked once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

__all__ = ["EntryFeatures", "stacked"]


def stacked(X: Sequence[Any]) -> Any:
    """Features of all examples, dense arrays (..., d) or sparse matrices, as one matrix with a row for each entry."""
    if sparse.issparse(X[0]):
        return sparse.csr_array(sparse.vstack(X, format="csr"))
    return np.concatenate([np.reshape(features, (-1, features.shape[-1])) for features in X])


class EntryFeatures:
    """The design of examples with features of their scores' entries.

    Parameters
    ----------
    blocks : sequence of matrices (n_rows, d)
        Features of entries of one kind, dense or sparse, each with weights of its own.
    offset : ndarray (n_examples + 1,)
        Where the scores of each example begin.
    places : sequence of int arrays (n_rows,), optional
        Which entry each row of a block is of; by default there is one block with a row for each entry. An entry without
        features has the score 0.
    forbidden : int array, optional
        Entries whose score is ``-inf``.
    """

    by_blocks = False  # a gradient is two products

    def __init__(
        self,
        blocks: Sequence[Any],
        offset: np.ndarray,
        places: Sequence[Any] = (slice(None),),
        forbidden: np.ndarray | None = None,
    ):
        self._blocks, self._places, self._forbidden = blocks, places, forbidden
        self._split = np.cumsum([block.shape[1] for block in blocks])
        self._sizes, self.n_entries, self.n_weights = np.diff(offset), int(offset[-1]), int(self._split[-1])

    def scores(self, w: np.ndarray) -> np.ndarray:
        """``Phi w``, one example after another."""
        theta = np.zeros(self.n_entries)
        for features, places, part in zip(self._blocks, self._places, np.split(w, self._split[:-1]), strict=True):
            theta[places] = features @ part
        if self._forbidden is not None:
            theta[self._forbidden] = -np.inf
        return theta

    def moments(self, q: np.ndarray, omega: np.ndarray) -> np.ndarray:
        """``sum_i omega_i Phi_i' q_i`` for entries that lie as the scores do."""
        x = np.repeat(omega, self._sizes) * q
        return np.concatenate(
            [features.T @ x[places] for features, places in zip(self._blocks, self._places, strict=True)]
        )
