"""Weights that are stored as a sparse matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

__all__ = ["SparseCoef", "dense_coef"]


class SparseCoef:
    """``sparsify`` and ``densify``, as scikit-learn's linear models have them."""

    coef_: Any

    def sparsify(self) -> Any:
        """Store ``coef_`` as a CSR matrix, which takes less room where most weights are 0.

        With ``penalty="l1"`` many are, see ``n_nonzero_``. Training stores an array again.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        self.coef_ = sp.csr_matrix(self.coef_)
        return self

    def densify(self) -> Any:
        """Store ``coef_`` as an array, as training does.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        self.coef_ = dense_coef(self)
        return self


def dense_coef(estimator: Any) -> np.ndarray:
    """The weights of an estimator as an array."""
    return estimator.coef_.toarray() if sp.issparse(estimator.coef_) else estimator.coef_
