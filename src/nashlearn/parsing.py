"""Parsing text with :class:`nashlearn.NashParser`: features of sentences without deep learning, and measures.

>>> from nashlearn import parsing
>>> parsing.attachment([[0, 1, 1]], [[0, 1, 2]])
0.6666666666666666
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np

from nashlearn.datasets.conllu import Sentence
from nashlearn.surroundings import SURROUNDINGS

if TYPE_CHECKING:
    from nashlearn.estimators import NashParser
    from nashlearn.tagging.groups import WordGroups
    from nashlearn.training.designs.hashed_arcs import HashedArcs

__all__ = [
    "FEATURE_SETS",
    "ArcLabeller",
    "HashedSentences",
    "attachment",
    "complete_matches",
    "enough_bits",
    "excess_risk_bound",
    "not_punctuation",
    "text_parser",
]

# What `nashlearn parse` chooses from: names of attributes of a token besides those of the treebank.
FEATURE_SETS: dict[str, tuple[str, ...]] = {"context": tuple(SURROUNDINGS), "plain": ()}

_FIRST_TAGS = ("VERB", "PUNCT")  # counted between two tokens: numbers 0 and 1
_WEIGHTS = 80  # for each word: with fewer, features that share a weight cost accuracy


class HashedSentences(Sequence[int]):
    """Sentences as the parser reads them: hashed attributes of their tokens, from which arc features are made.

    The features of an arc are conjunctions of words, lemmas, tags and morphology of both its ends and their
    neighbours, of direction and distance, and of the tags between ([mcdonald2005]_). Further attributes of the ends are
    conjoined with each other, with lemmas and with tags.

    Parameters
    ----------
    sentences : sequence of Sentence
        As :func:`nashlearn.datasets.read_conllu` gives them. Heads and relations are not looked at.
    bits : int
        ``2^bits`` weights; 10 to 28. See :func:`enough_bits`.
    features : {"plain", "context"}, default="plain"
        Which attributes of the ends there are besides. "context": two fine tags on either side, and the preposition or
        conjunction that introduces a word (:mod:`nashlearn.surroundings`).
    groups : WordGroups, optional
        Groups that words belong to, such as those of :func:`nashlearn.tagging.groups.groups_of_vectors`: their levels
        are further attributes ([koo2008]_), three at most.
    """

    def __init__(
        self,
        sentences: Sequence[Sentence],
        bits: int = 22,
        features: str = "plain",
        groups: WordGroups | None = None,
    ):
        if not 10 <= bits <= 28:
            raise ValueError(f"bits must lie between 10 and 28; got {bits!r}")
        if features not in FEATURE_SETS:
            raise ValueError(f"features must be one of {sorted(FEATURE_SETS)}; got {features!r}")
        from nashlearn.training.designs.hashed_arcs import Attributes

        self.features, self.groups = features, groups
        self.sizes = np.array([len(sentence) for sentence in sentences], dtype=np.int64)
        if not self.sizes.all():
            raise ValueError(f"sentences[{(self.sizes == 0).argmax()}] is empty")
        seen: dict[str, int] = {}

        def code(text: str) -> int:
            if text not in seen:
                seen[text] = int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")
            return seen[text]

        tags: dict[str, int] = {name: i for i, name in enumerate(_FIRST_TAGS)}
        first = np.concatenate([[0], np.cumsum(self.sizes + 3)])[:-1]
        rows = int((self.sizes + 3).sum())
        width = 5 + self._further
        codes, tag = np.empty((rows, width), np.uint64), np.zeros(rows, np.int64)
        pad, root = [code(f"<pad {j}>") for j in range(width)], [code(f"<root {j}>") for j in range(width)]
        for start, sentence in zip(first, sentences, strict=True):
            columns = sentence.forms, sentence.lemmas, sentence.upos, sentence.xpos, sentence.feats
            columns += self._attributes(sentence)
            table = [[code(f"{j}{entry}") for entry in column] for j, column in enumerate(columns)]
            stop = start + len(sentence) + 2
            codes[start], codes[start + 1], codes[stop] = pad, root, pad
            codes[start + 2 : stop] = np.array(table, dtype=np.uint64).T
            tag[start + 2 : stop] = [min(tags.setdefault(name, len(tags)), 62) for name in sentence.upos]
        self.attributes = Attributes(codes, tag, first, self.sizes, bits)

    @property
    def _further(self) -> int:
        """How many further attributes there are."""
        return len(FEATURE_SETS[self.features]) + (0 if self.groups is None else self.groups.groups.shape[1])

    def _attributes(self, sentence: Sentence) -> tuple[Sequence[str], ...]:
        """The further attributes of the words of a sentence, a column each."""
        found = [SURROUNDINGS[name](sentence) for name in FEATURE_SETS[self.features]]
        if self.groups is not None:
            unknown = [-1] * self.groups.groups.shape[1]
            of_words = [self.groups.of(form) or unknown for form in sentence.forms]
            found += [list(map(str, level)) for level in zip(*of_words, strict=True)]
        return tuple(found)

    def __len__(self) -> int:
        return self.sizes.size

    def __getitem__(self, i: Any) -> Any:
        return self.sizes[i]

    def __iter__(self) -> Iterator[int]:
        return iter(self.sizes.tolist())

    @property
    def kind(self) -> tuple[int, int, bool]:
        """What sentences must share to be scored by the same weights.

        Unlike arrays, they have no dimensions: the first entry is the number of further attributes, negative.
        """
        return -self._further, 1 << self.attributes.bits, True

    def basis(self) -> None:
        """None: features are not reduced."""

    def design(self, basis: None = None) -> HashedArcs:
        """How arc scores depend on the weights."""
        from nashlearn.training.designs.hashed_arcs import HashedArcs

        return HashedArcs(self.attributes)

    def scores(self, w: np.ndarray) -> list[np.ndarray]:
        """Arc scores (n, n + 1) of each sentence under the weights ``w``."""
        bounds = np.cumsum(self.sizes * (self.sizes + 1))[:-1]
        parts = np.split(self.design().scores(w), bounds)
        return [theta.reshape(n, n + 1) for theta, n in zip(parts, self.sizes, strict=True)]

    def arc_features(self, heads: Sequence[Any], bits: int = 17) -> Any:
        """Features of the arcs that ``heads`` name, one row a token of all sentences: CSR (tokens, 2^bits), float32."""
        from scipy import sparse

        from nashlearn.kernels.hashed_arcs import ROOM, VALUE

        flat = np.concatenate([np.asarray(one, dtype=np.intp) for one in heads])
        wrong = [i for i, (one, n) in enumerate(zip(heads, self.sizes, strict=True)) if len(one) != n]
        if wrong:
            raise ValueError(f"heads[{wrong[0]}] must have {self.sizes[wrong[0]]} entries, one for each token")
        indices, bounds = np.empty(flat.size * ROOM, np.int32), np.empty(flat.size + 1, np.intp)
        filled = self.attributes.compiled().arcs(np.arange(len(self)), flat, bits, indices, bounds)
        values = np.full(filled, VALUE, np.float32)
        table = sparse.csr_matrix((values, indices[:filled].copy(), bounds), shape=(flat.size, 1 << bits))
        table.sum_duplicates()
        return table


def enough_bits(words: int) -> int:
    """Bits for a treebank of so many words: 80 weights for each, 22 bits at least and 25 at most.

    With fewer, features share weights. Trained on 25,000 words of EWT, UAS on its development set is 82.5 with 19 bits,
    82.9 with 20, 83.2 with 21 (80 for each word) and 83.3 with 22.

    >>> enough_bits(20_000), enough_bits(200_000)
    (22, 24)
    """
    return int(np.clip(np.ceil(np.log2(max(_WEIGHTS * words, 1))), 22, 25))


def text_parser(**parameters: Any) -> NashParser:
    """A :class:`nashlearn.NashParser` with what suits :class:`HashedSentences`; ``parameters`` override it.

    With so many features a relative gap of 1e-3 would take hundreds of passes. On English EWT accuracy has settled at a
    gap of a tenth, after about ten passes: hence ``alpha=3e-6``, ``tol=0.1`` and ``max_iter=30``. EWT has
    200,000 words: for other treebanks, an ``alpha`` of 0.6 divided by the number of words takes about as many passes.

    >>> text_parser(random_state=0).tol
    0.1
    """
    from nashlearn.estimators import NashParser

    return NashParser(**{"alpha": 3e-6, "tol": 0.1, "max_iter": 30, **parameters})


def not_punctuation(sentences: Sequence[Sentence]) -> list[np.ndarray]:
    """For each sentence, which words count in evaluations that leave out punctuation (UPOS ``PUNCT``)."""
    return [np.array([tag != "PUNCT" for tag in sentence.upos]) for sentence in sentences]


class ArcLabeller:
    """Labels of arcs by a :class:`nashlearn.NashClassifier` on the features of each arc, for known heads.

    Parameters
    ----------
    alpha, tol, max_iter, random_state
        As in :class:`nashlearn.NashClassifier`.
    bits : int
        ``2^bits`` features; each has a weight for every label.
    """

    def __init__(
        self, *, alpha: float = 1e-5, bits: int = 17, tol: float = 0.05, max_iter: int = 100, random_state: Any = None
    ):
        self.alpha, self.bits, self.tol, self.max_iter, self.random_state = alpha, bits, tol, max_iter, random_state

    def fit(
        self, X: HashedSentences, heads: Sequence[Any], labels: Sequence[Sequence[str]], callback: Any = None
    ) -> ArcLabeller:
        """Train on the arcs of true trees with their labels; ``callback`` as in :class:`nashlearn.NashClassifier`."""
        from nashlearn.estimators import NashClassifier

        # The exact game: with millions of weights its dual ascent is far cheaper than the gradients of a smooth loss.
        self.classifier_ = NashClassifier(
            smoothing=0, alpha=self.alpha, tol=self.tol, max_iter=self.max_iter, random_state=self.random_state
        )
        self.classifier_.set_params(callback=callback)
        self.classifier_.fit(X.arc_features(heads, self.bits), np.concatenate([np.array(one) for one in labels]))
        self.classifier_.set_params(callback=None)
        return self

    def predict(self, X: HashedSentences, heads: Sequence[Any]) -> list[np.ndarray]:
        """The label of each token's arc to its head, for each sentence."""
        return np.split(self.classifier_.predict(X.arc_features(heads, self.bits)), np.cumsum(X.sizes)[:-1])


def _right(predicted: Any, true: Any, labels: Any, true_labels: Any, mask: Any) -> list[np.ndarray]:
    """Which words of each sentence are right, of those that count."""
    if len(predicted) != len(true):
        raise ValueError(f"{len(predicted)} predicted sentences for {len(true)} true ones")
    if (labels is None) != (true_labels is None):
        raise ValueError("labels and true_labels must be given together")
    right = []
    for i, (a, b) in enumerate(zip(predicted, true, strict=True)):
        if len(a) != len(b):
            raise ValueError(f"sentence {i} has {len(a)} predicted heads for {len(b)} true ones")
        hit = np.asarray(a) == np.asarray(b)
        if labels is not None:
            hit = hit & (np.asarray(labels[i], dtype=object) == np.asarray(true_labels[i], dtype=object))
        right.append(hit if mask is None else hit[np.asarray(mask[i], dtype=bool)])
    return right


def attachment(predicted: Any, true: Any, labels: Any = None, true_labels: Any = None, mask: Any = None) -> float:
    """Share of words with the right head (UAS), and label where labels are given (LAS).

    Parameters
    ----------
    predicted, true : sequences of heads
    labels, true_labels : sequences of relations, optional
    mask : sequence of bool arrays, optional
        Words that count, say :func:`not_punctuation`.
    """
    right = np.concatenate(_right(predicted, true, labels, true_labels, mask))
    return float(right.mean()) if right.size else float("nan")


def complete_matches(predicted: Any, true: Any, labels: Any = None, true_labels: Any = None, mask: Any = None) -> float:
    """Share of sentences of which every word that counts is right (UCM, or LCM with labels)."""
    return float(np.mean([hit.all() for hit in _right(predicted, true, labels, true_labels, mask)]))


def excess_risk_bound(n_samples: int, loss: float, feature_norm: float, radius: float, confidence: float) -> float:
    """How far the worst-case risk of the trained weights may lie above the best, on new data ([li2022]_, Theorem 2).

    With probability ``confidence`` over ``n_samples`` examples, for losses up to ``loss``, features of norm up to
    ``feature_norm`` and moments known to within ``radius``,

        excess <= 4 K B / (eps sqrt(m)) (1 + 3/2 sqrt(log(4 / rho) / 2)),      rho = 1 - confidence.
    """
    for name, value in (("n_samples", n_samples), ("loss", loss), ("feature_norm", feature_norm), ("radius", radius)):
        if not 0 < value < np.inf:
            raise ValueError(f"{name} must be positive and finite; got {value!r}")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1; got {confidence!r}")
    spread = 1.0 + 1.5 * np.sqrt(np.log(4.0 / (1.0 - confidence)) / 2.0)
    return float(4.0 * loss * feature_norm / (radius * np.sqrt(n_samples)) * spread)
