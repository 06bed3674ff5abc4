"""Free text as features: its words and pairs of words, weighed by TF-IDF."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.feature_extraction.text import TfidfVectorizer

__all__ = ["WordFeatures"]

_TOKENS = r"(?u)\b\w{2,30}\b"


class WordFeatures(TransformerMixin, BaseEstimator):
    """Rows of unit length of scikit-learn's ``TfidfVectorizer``, whose words are kept in one array.

    Parameters
    ----------
    most : int, default=20_000
        The most frequent words, and pairs of words, that are kept.
    least : int, default=2
        In how many texts a word must be found.
    """

    def __init__(self, most: int = 20_000, least: int = 2):
        self.most, self.least = most, least

    def _vectorizer(self, **more: Any) -> TfidfVectorizer:
        return TfidfVectorizer(
            ngram_range=(1, 2), sublinear_tf=True, strip_accents="unicode", token_pattern=_TOKENS, **more
        )

    def fit(self, X: Any, y: Any = None) -> WordFeatures:
        """Find the words of the texts ``X`` (n,); there may be none."""
        vectorizer = self._vectorizer(max_features=self.most, min_df=min(self.least, max(len(X), 1)))
        try:
            vectorizer.fit(X)
        except ValueError:  # no word is in enough texts
            self.words_, self.idf_ = np.empty(0, dtype="U1"), np.empty(0)
            return self
        self.words_, self.idf_ = np.array(vectorizer.get_feature_names_out(), dtype=np.str_), vectorizer.idf_
        return self

    def transform(self, X: Any) -> sparse.csr_matrix:
        """TF-IDF (n, words) of texts; words that were not found in training are passed over."""
        if not self.words_.size:
            return sparse.csr_matrix((len(X), 0))
        vectorizer = self._vectorizer(vocabulary=self.words_.tolist())
        vectorizer.idf_ = self.idf_
        return vectorizer.transform(X)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The words."""
        return self.words_.astype(object)
