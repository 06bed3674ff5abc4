"""Names of what holds of each token of a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator, TransformerMixin

from nashlearn.tagging.gazetteers import Gazetteer, read_gazetteer
from nashlearn.tagging.groups import WordGroups, groups_of_text, groups_of_vectors
from nashlearn.tagging.spelling import affixes, kind, manner, shape, short_shape, spelt
from nashlearn.vectors import read_vectors

__all__ = ["RECIPES", "TokenFeatures"]

_AROUND = (-2, -1, 0, 1, 2)
_VECTOR_GROUPS = (64, 256, 1024)

# What `nashlearn tag` chooses from: parameters of TokenFeatures by name.
RECIPES: dict[str, dict[str, Any]] = {
    "window": {"window": True, "spelling": False, "entities": False, "clusters": 0},
    "spelling": {"window": True, "spelling": True, "entities": False, "clusters": 0},
    "entities": {"window": False, "spelling": True, "entities": True, "clusters": 0},
    "wide": {"window": True, "spelling": True, "entities": True, "clusters": 0},
    "clusters": {"window": True, "spelling": True, "entities": True, "clusters": 256},
}


class TokenFeatures(TransformerMixin, BaseEstimator):
    """Names of what holds of each token, for sentences of tokens of columns, as the CoNLL shared tasks have them.

    The first column is the word; others are what is known of it, such as its part of speech: within two tokens, alone,
    in pairs and in threes, as crfsuite's example has them.

    Parameters
    ----------
    spelling : bool, default=True
        Whether to add how a word is written: in small letters, its ends and its shape.
    entities : bool, default=False
        Whether to describe words as names of people, places and firms ask for: the word and its neighbours in small
        letters, how they are written and cut, and how the sentence is written. ``spelling`` is then a part of it.
    clusters : int, default=0
        Groups of words that ``fit`` learns from the sentences, by what stands beside a word, and a quarter as many
        coarser ones; 0 for none.
    gazetteers : sequence of paths, default=()
        Files of names, one a line. Where a name of a file ``people.txt`` stands, its words have ``people=B``, ``I`` and
        ``E``, or ``S`` where it is one word; so do the words beside them.
    vectors : path, optional
        Vectors of words, see :func:`nashlearn.vectors.read_vectors`. ``fit`` groups them by k-means, and the groups of
        a word and its neighbours are features: they say more of rare words than real numbers do [guo2014]_.
    random_state : int, default=0
        Of the groups.
    window : bool, default=True
        Whether to add the words within two tokens, alone and beside their neighbours. Small texts may do better
        without, where there are ``entities``.

    Attributes
    ----------
    gazetteers_, groups_ : dict
        What ``fit`` has read and learnt, by name. ``transform`` needs no files.
    """

    # Those that version 0.1 has saved know spelling only.
    entities: bool = False
    clusters: int = 0
    gazetteers: Sequence[str] = ()
    vectors: str | None = None
    random_state: int = 0
    window: bool = True
    gazetteers_: dict[str, Gazetteer] = {}  # noqa: RUF012  # never written to
    groups_: dict[str, WordGroups] = {}  # noqa: RUF012

    def __init__(
        self,
        spelling: bool = True,
        entities: bool = False,
        clusters: int = 0,
        gazetteers: Sequence[str] = (),
        vectors: str | None = None,
        random_state: int = 0,
        window: bool = True,
    ):
        self.spelling = spelling
        self.entities = entities
        self.clusters = clusters
        self.gazetteers = gazetteers
        self.vectors = vectors
        self.random_state = random_state
        self.window = window

    def fit(self, X: Iterable[Sequence[Sequence[str]]], y: Any = None) -> TokenFeatures:
        """Read the files, and learn groups of words where asked for."""
        return self.read().learn(X)

    def read(self) -> TokenFeatures:
        """The part of ``fit`` that hangs on no sentences: read gazetteers, and group vectors."""
        self.gazetteers_, self.groups_ = {}, {}
        for path in self.gazetteers:
            name = Path(path).name.split(".")[0]
            if name in self.gazetteers_:
                raise ValueError(f"gazetteers must have different names; two files are called {name!r}.")
            self.gazetteers_[name] = read_gazetteer(path)
        if self.vectors is not None:
            self.groups_["vector"] = groups_of_vectors(read_vectors(self.vectors), _VECTOR_GROUPS, self.random_state)
        return self

    def learn(self, X: Iterable[Sequence[Sequence[str]]]) -> TokenFeatures:
        """The other part: learn groups from sentences."""
        self.groups_ = {name: groups for name, groups in self.groups_.items() if name != "cluster"}
        if self.clusters:
            words = [[token[0] for token in sentence] for sentence in X]
            sizes = (self.clusters, max(self.clusters // 4, 1))
            self.groups_["cluster"] = groups_of_text(words, sizes, self.random_state)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return bool(self.gazetteers_ or self.groups_) or not (self.gazetteers or self.clusters or self.vectors)

    def transform(self, X: Iterable[Sequence[Sequence[str]]]) -> list[list[list[str]]]:
        """For each sentence the lists of names of its tokens."""
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)
        return [self._sentence(sentence) for sentence in X]

    def _sentence(self, sentence: Sequence[Sequence[str]]) -> list[list[str]]:
        words, *others = zip(*sentence, strict=True)
        rows = [_around("w", words, i, (-1, 0)) if self.window else [] for i in range(len(words))]
        described = _entity_rows(words) if self.entities else [[] for _ in words]
        for i, (row, word) in enumerate(zip(rows, words, strict=True)):
            row += described[i]
            for j, column in enumerate(others, start=1):
                row += _around(f"{j}:", column, i, (-2, -1, 0, 1), (-2, -1, 0))
            if self.spelling and not self.entities:
                row += spelt(word)
        for name, gazetteer in self.gazetteers_.items():
            _spread(rows, f"{name}", [[mark] if mark else [] for mark in gazetteer.marks(words)], (-1, 0, 1))
        for name, groups in self.groups_.items():
            _spread(rows, name, [[f"{j}.{g}" for j, g in enumerate(groups.of(word))] for word in words], _AROUND)
        return rows


def _around(name: str, values: Sequence[str], i: int, pairs: Sequence[int], threes: Sequence[int] = ()) -> list[str]:
    """What stands around position ``i``: alone, in pairs and in threes that begin so far from it."""
    at = {d: values[i + d] if 0 <= i + d < len(values) else "_" for d in _AROUND}
    row = [f"{name}{d}={value}" for d, value in at.items()]
    row += [f"{name}{d},{d + 1}={at[d]}|{at[d + 1]}" for d in pairs]
    return row + [f"{name}{d}..{d + 2}={at[d]}|{at[d + 1]}|{at[d + 2]}" for d in threes]


def _spread(rows: list[list[str]], name: str, values: Sequence[Sequence[Any]], far: Iterable[int]) -> None:
    """Add the values of each token to its row, and to those so far before and after it."""
    for i, own in enumerate(values):
        for d in far:
            if 0 <= i - d < len(rows):
                rows[i - d] += [f"{name}{d}={value}" for value in own]


def _entity_rows(words: Sequence[str]) -> list[list[str]]:
    """The names of ``TokenFeatures(entities=True)`` that tell of words."""
    n, lower = len(words), [word.lower() for word in words]
    kinds, shapes = [kind(word) for word in words], [short_shape(word) for word in words]
    style = manner(kinds)

    def at(values: Sequence[str], i: int) -> str:
        return values[i] if 0 <= i < n else "_"

    rows = []
    for i, word in enumerate(words):
        row = [f"w={word}", f"shape={shape(word)}", f"style={style}|{kinds[i]}"]
        row += [f"l{d}={at(lower, i + d)}" for d in (-1, 0, 1)] + _around("k", kinds, i, (-1, 0), (-1,))
        row += [f"short{d}={at(shapes, i + d)}" for d in (-1, 0, 1)]
        row += [f"kl{d}={kinds[i]}|{at(lower, i + d)}" for d in (-1, 1)]
        row += [f"first={min(i, 3)}", f"last={min(n - 1 - i, 2)}"]
        row += affixes(word, (1, 2, 3, 4, 5), (1, 2, 3, 4, 5))
        row += [f"{d}{end}" for d in (-1, 1) for end in affixes(at(lower, i + d), (3,), (3,))]
        rows.append(row)
    return rows
