"""What sequence labellers of CRFsuite call by other names: marginals as dictionaries, weights by their names."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

__all__ = ["CrfsuiteNames"]


class CrfsuiteNames:
    """Methods and attributes of ``sklearn_crfsuite.CRF``, in terms of those of :class:`NashTagger`."""

    def predict_single(self, x: Any) -> Any:
        """The labels of one sequence: ``predict([x])[0]``."""
        tagger: Any = self
        return tagger.predict([x])[0]

    def predict_marginals(self, X: Any) -> list[list[dict[Any, float]]]:
        """Probabilities of the labels at each position of each sequence, as ``{label: probability}``.

        They are those of :meth:`predict_proba`.
        """
        tagger: Any = self
        labels = tagger.classes_.tolist()
        return [[dict(zip(labels, row, strict=True)) for row in one.tolist()] for one in tagger.predict_proba(X)]

    def predict_marginals_single(self, x: Any) -> list[dict[Any, float]]:
        """Probabilities of the labels at each position of one sequence: ``predict_marginals([x])[0]``."""
        return self.predict_marginals([x])[0]

    @property
    def transition_features_(self) -> dict[tuple[Any, Any], float]:
        """Scores of transitions that are not 0, as ``{(label, next label): score}``: those of ``transitions_``."""
        tagger: Any = self
        labels = tagger.classes_.tolist()
        return {(labels[i], labels[j]): weight for i, j, weight in _entries(tagger.transitions_)}

    @property
    def state_features_(self) -> dict[tuple[Any, Any], float]:
        """Weights of features that are not 0, as ``{(feature, label): weight}``: the entries of ``coef_``.

        Features that have no names are numbered.
        """
        tagger: Any = self
        labels = tagger.classes_.tolist()
        names = getattr(tagger, "feature_names_", range(tagger.n_features_in_))
        return {(names[j], labels[i]): weight for i, j, weight in _entries(tagger.coef_)}


def _entries(matrix: Any) -> list[tuple[int, int, float]]:
    """Row, column and value of entries that are not 0."""
    if sparse.issparse(matrix):
        of = matrix.tocoo()
        rows, columns, values = of.row, of.col, of.data
    else:
        rows, columns = np.nonzero(matrix)
        values = matrix[rows, columns]
    own = values != 0
    return list(zip(rows[own].tolist(), columns[own].tolist(), values[own].tolist(), strict=True))
