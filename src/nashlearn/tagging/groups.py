"""Groups of words that stand in the same places: learnt from sentences, or made of vectors that a user has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from nashlearn.estimators._network_input import NamedFeatures
from nashlearn.vectors import WordVectors

__all__ = ["WordGroups", "groups_of_text", "groups_of_vectors"]

_RARE = 3  # occurrences from which the neighbours of a word tell something
_NEIGHBOURS = 1000  # most frequent words that are told apart as neighbours
_DIMENSIONS = 50


class WordGroups:
    """The groups that each of some words belongs to, at several levels.

    Parameters
    ----------
    words : sequence of str
    groups : ndarray (n_words, levels)
    """

    def __init__(self, words: Sequence[str], groups: np.ndarray):
        self.words = NamedFeatures(words)  # kept in files as two arrays
        self.groups = np.ascontiguousarray(groups, dtype=np.int32)

    def of(self, word: str) -> list[int]:
        """The groups of a word, else of its form without case and digits; none where both are unknown."""
        known = self.words.columns
        place = known.get(word, -1)
        if place < 0:
            place = known.get(plain(word), -1)
        return [] if place < 0 else self.groups[place].tolist()


def plain(word: str) -> str:
    """A word in small letters, its digits made 0."""
    return "".join("0" if letter.isdigit() else letter for letter in word.lower())


def groups_of_text(sentences: Sequence[Sequence[str]], sizes: Sequence[int], seed: int = 0) -> WordGroups:
    """Groups of the words of sentences by what stands before and after them [schutze1995]_.

    The positive pointwise mutual information of words and their neighbours on either side, reduced to its largest
    singular vectors, is grouped by k-means, once for each of ``sizes``. Costs a pass over the text and a singular value
    decomposition of a sparse matrix.
    """
    from sklearn.decomposition import TruncatedSVD

    texts = [[plain(word) for word in sentence] for sentence in sentences]
    counts = Counter(word for text in texts for word in text)
    words = [word for word, count in sorted(counts.items(), key=lambda one: (-one[1], one[0])) if count >= _RARE]
    if len(words) < 2 * _DIMENSIONS:  # too few to tell anything
        return WordGroups([], np.zeros((0, len(sizes))))
    beside = _information(texts, words)
    table = TruncatedSVD(_DIMENSIONS, random_state=seed).fit_transform(beside)
    return groups_of_vectors(WordVectors(words, table), sizes, seed)


def _information(texts: Sequence[Sequence[str]], words: Sequence[str]) -> object:
    """Positive pointwise mutual information (words, 2 (neighbours + 2)): before and after, edges and rare words too."""
    from scipy import sparse

    place = {word: i for i, word in enumerate(words)}
    width = min(_NEIGHBOURS, len(words)) + 2
    rows, columns = [], []
    for text in texts:
        places = [place.get(word, -1) for word in text]
        codes = [width - 1, *(p if 0 <= p < width - 2 else width - 2 for p in places), width - 1]
        for i, p in enumerate(places):
            if p >= 0:
                rows += [p, p]
                columns += [codes[i], width + codes[i + 2]]
    counts = sparse.coo_matrix((np.ones(len(rows)), (rows, columns)), (len(words), 2 * width)).tocsr().tocoo()
    of_row, of_column = (np.asarray(counts.sum(axis=axis)).ravel() for axis in (1, 0))
    information = np.log(counts.data * len(rows) / (of_row[counts.row] * of_column[counts.col]))
    return sparse.csr_matrix((np.maximum(information, 0.0), (counts.row, counts.col)), counts.shape)


def groups_of_vectors(vectors: WordVectors, sizes: Sequence[int], seed: int = 0) -> WordGroups:
    """Groups of the words of vectors by k-means, once for each of ``sizes`` [guo2014]_."""
    words = list(dict.fromkeys(vectors.words))
    groups = np.stack([vectors.clusters(size, seed) for size in sizes], axis=1)
    return WordGroups(words, groups[vectors.places(words)])
