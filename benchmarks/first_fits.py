"""One small fit of each kind of estimator, of fractions of a second: ``python first_fits.py [NAME ...]`` runs them.

The file needs nothing but the library, so that an installed wheel can be tried with it alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["FITS", "Fit", "rows"]

Fit = tuple[Any, Any, Any]  # an estimator, inputs, outputs


def rows() -> tuple[np.ndarray, np.ndarray]:
    """150 rows of four features, and three classes that overlap."""
    rng = np.random.default_rng(0)
    y = np.arange(150) % 3
    return rng.normal(size=(150, 4)) + y[:, None], y


def zero_one() -> Fit:
    from nashlearn import NashClassifier

    return NashClassifier(), *rows()


def absolute() -> Fit:
    from nashlearn import NashClassifier

    return NashClassifier("absolute"), *rows()


def squared() -> Fit:
    from nashlearn import NashClassifier

    return NashClassifier("squared"), *rows()


def cost_matrix() -> Fit:
    from nashlearn import NashClassifier

    return NashClassifier([[0, 1, 5], [1, 0, 1], [2, 1, 0]]), *rows()


def abstainer() -> Fit:
    from nashlearn import NashAbstainer

    return NashAbstainer(0.2), *rows()


def ordinal() -> Fit:
    from nashlearn import NashOrdinalClassifier

    return NashOrdinalClassifier(), *rows()


def rbf_kernel() -> Fit:
    from nashlearn import NashClassifier

    return NashClassifier(kernel="rbf", gamma=0.5, alpha=1e-2), *rows()


def _graphs(edges: Callable[[int], list[tuple[int, int]]]) -> tuple[list[Any], list[Any], list[np.ndarray]]:
    """Labels of eight graphs of six nodes, features that tell them dimly, and edges."""
    rng = np.random.default_rng(1)
    y = [rng.integers(3, size=6) for _ in range(8)]
    features = [rng.normal(size=(6, 3)) + np.eye(3)[labels] for labels in y]
    return features, y, [np.array(edges(6)) for _ in y]


def tagger() -> Fit:
    from nashlearn import NashTagger

    X, y, _ = _graphs(lambda n: [])
    return NashTagger(tol=1e-2), X, y


def network_with_cycles() -> Fit:
    from nashlearn import NashMarkovNetwork

    X, y, edges = _graphs(lambda n: [(i, (i + 1) % n) for i in range(n)])
    return NashMarkovNetwork(tol=1e-2), list(zip(X, edges, strict=True)), y


def matcher() -> Fit:
    from nashlearn import NashMatcher

    rng = np.random.default_rng(2)
    y = [rng.permutation(4) for _ in range(8)]
    X = [np.stack([rng.normal(size=(4, 4)), rng.normal(size=(4, 4)) + np.eye(4)[own]], axis=2) for own in y]
    return NashMatcher(tol=1e-2), X, y


def _heads() -> list[np.ndarray]:
    """Trees in which each word hangs from one before it, or from the root."""
    rng = np.random.default_rng(3)
    return [np.array([0, *(rng.integers(1, i + 1) for i in range(1, 6))]) for _ in range(8)]


def parser_arcs() -> Fit:
    from nashlearn import NashParser

    rng, y = np.random.default_rng(4), _heads()
    X = [np.stack([rng.normal(size=(6, 7)), rng.normal(size=(6, 7)) + np.eye(7)[own]], axis=2) for own in y]
    return NashParser(tol=1e-2), X, y


def parser_text() -> Fit:
    from nashlearn import NashParser
    from nashlearn.datasets.conllu import Sentence
    from nashlearn.parsing import HashedSentences

    rng, y = np.random.default_rng(5), _heads()
    words = [rng.choice(["cat", "dog", "sees", "the"], size=own.size) for own in y]
    sentences = [
        Sentence([[str(i + 1), word, word, word[0], *"______"] for i, word in enumerate(own)]) for own in words
    ]
    return NashParser(tol=1e-2, alpha=1e-2, random_state=0), HashedSentences(sentences, bits=12), y


FITS: dict[str, Callable[[], Fit]] = {
    "zero-one": zero_one,
    "absolute": absolute,
    "squared": squared,
    "cost matrix": cost_matrix,
    "abstainer": abstainer,
    "ordinal": ordinal,
    "rbf kernel": rbf_kernel,
    "tagger": tagger,
    "network with cycles": network_with_cycles,
    "matcher": matcher,
    "parser, arcs": parser_arcs,
    "parser, text": parser_text,
}


def main(names: list[str]) -> None:
    """Run the fits of these names, all by default, and print what each has certified."""
    for name in names or FITS:
        model, X, y = FITS[name]()
        model.fit(X, y)
        assert len(model.predict(X)) == len(y)
        print(f"{name:20s} certified to {model.dual_gap_:.1e}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
