"""What NashFScore reads: rows, and one or several labels of two values."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_sample_weight, validate_data

from nashlearn.arrays import aligned
from nashlearn.dask.collections import is_collection
from nashlearn.estimators._labels import known_positions, refuse_none
from nashlearn.estimators._parameters import number
from nashlearn.estimators._row_functions import FLOATS

__all__ = ["FScoreData", "check_metric"]


def check_metric(estimator: Any) -> None:
    """Refuse metrics that are not trained for, with the reason."""
    if not 0 < number(estimator.beta, "beta") < 1e6:
        raise ValueError(f"beta must be a positive number below 1e6; got {estimator.beta!r}.")
    if estimator.metric not in ("f", "jaccard"):
        raise ValueError(f"metric must be 'f' or 'jaccard'; got {estimator.metric!r}.")
    if estimator.metric == "jaccard" and estimator.beta != 1:
        raise ValueError(f"beta must be 1 for metric='jaccard', which has no other; got {estimator.beta!r}.")
    if estimator.average == "samples":
        raise ValueError(
            "average must be None, 'macro' or 'micro'; 'samples' is the mean of one ratio for each row, which is at "
            "least t for no sum over rows and labels, and so is no game of theirs."
        )
    if estimator.average not in (None, "macro", "micro"):
        raise ValueError(f"average must be None, 'macro' or 'micro'; got {estimator.average!r}.")
    if estimator.average is not None and estimator.pos_label is not None:
        raise ValueError(f"pos_label must be None for indicator matrices, whose 1 it is; got {estimator.pos_label!r}.")
    if isinstance(estimator.zero_division, str) or not (
        estimator.zero_division in (0, 1) or math.isnan(number(estimator.zero_division, "zero_division"))
    ):
        raise ValueError(f"zero_division must be 0.0, 1.0 or nan; got {estimator.zero_division!r}.")


class FScoreData(NamedTuple):
    """Rows that count and their labels.

    Attributes
    ----------
    X
        As training reads it.
    codes : ndarray (labels, n)
        0 or 1; for two classes their positions in ``classes``.
    omega : ndarray (n,)
        Shares of the mean.
    kept : ndarray (n,)
        Which rows they are of those given.
    total : float
        How many, by weight.
    classes : ndarray
        The two classes, or the indices of labels.
    positive : int
        The positive code.
    """

    X: Any
    codes: np.ndarray
    omega: np.ndarray
    kept: np.ndarray
    total: float
    classes: np.ndarray
    positive: int

    @classmethod
    def read(cls, estimator: Any, X: Any, y: Any, sample_weight: Any) -> FScoreData:
        """Check the arguments of ``fit``."""
        if is_collection(X):
            raise TypeError("X must be an array or a CSR matrix; NashFScore does not train on Dask collections.")
        refuse_none(y)
        pairwise = estimator._pairwise()
        several = estimator.average is not None or getattr(y, "shape", (0, 1))[1:] not in ((), (1,))
        X, y = validate_data(
            estimator,
            X,
            y,
            accept_sparse=False if pairwise else "csr",
            dtype=FLOATS,
            order="C",
            accept_large_sparse=True,
            multi_output=several,
        )
        if pairwise and X.shape[0] != X.shape[1]:
            raise ValueError(f"kernel='precomputed' needs a square Gram matrix as X; got shape {X.shape}.")
        classes, codes, positive = _of_classes(estimator, y) if estimator.average is None else _of_indicators(y)
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        kept = np.flatnonzero(weight > 0)
        if not kept.size:
            raise ValueError("sample_weight must be positive for at least one row; all rows have weight 0.")
        X = aligned(X)
        if kept.size < len(weight):
            X, codes = X[kept][:, kept] if pairwise else X[kept], codes[:, kept]
        with np.errstate(over="ignore"):
            total = float(weight[kept].sum())
        if not np.isfinite(total):
            raise ValueError("sample_weight must have a finite sum; it overflows. Divide the weights by their mean.")
        codes = np.ascontiguousarray(codes, dtype=np.int64)
        if estimator.average is None and codes.min() == codes.max():
            raise ValueError(
                f"y holds one class only among rows of positive weight, {classes[codes.min()]!r}; it needs both."
            )
        return cls(X, codes, weight[kept] / total, kept, total, classes, positive)


def _of_classes(estimator: Any, y: Any) -> tuple[np.ndarray, np.ndarray, int]:
    """The two classes, codes (1, n) and the position of the positive class."""
    check_classification_targets(y)
    kind = type_of_target(y, input_name="y")
    if kind == "multilabel-indicator":
        raise ValueError("average must be 'macro' or 'micro' where y is an indicator matrix; got None.")
    classes = np.unique(y)
    if kind != "binary":
        raise ValueError(
            f"Only binary classification is supported. The type of the target is {kind}. Encode y as an indicator "
            "matrix, say by sklearn.preprocessing.LabelBinarizer, for the mean over classes with average='macro'."
        )
    if classes.size < 2:
        raise ValueError(
            f"y holds {'one class only, ' + repr(classes.tolist()[0]) if classes.size else 'no labels'}; "
            "NashFScore needs two distinct labels."
        )
    positive = 1
    if estimator.pos_label is not None:
        found = np.flatnonzero(classes == estimator.pos_label) if np.ndim(estimator.pos_label) == 0 else np.empty(0)
        if not found.size:
            raise ValueError(f"pos_label must be one of the classes {classes.tolist()}; got {estimator.pos_label!r}.")
        positive = int(found[0])
    return classes, known_positions(classes, y, "is not among the classes")[None, :], positive


def _of_indicators(y: Any) -> tuple[np.ndarray, np.ndarray, int]:
    """The indices of labels, codes (labels, n), and 1."""
    Y = y.toarray() if sp.issparse(y) else np.asarray(y)
    if Y.ndim != 2:
        raise ValueError(
            f"y must be an indicator matrix (n, labels) where average is given; got shape {Y.shape}. For two classes "
            "average must be None."
        )
    if Y.dtype.kind not in "biuf" or not np.isin(Y, (0, 1)).all():
        raise ValueError("y must be an indicator matrix of zeros and ones where average is given; it has other values.")
    return np.arange(Y.shape[1]), Y.T.astype(np.int64), 1
