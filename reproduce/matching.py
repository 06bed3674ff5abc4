"""Thesis Table XII: matching pedestrians between frames, trained on one video and judged on another.

The protocol is that of [fathony2019]_, sec. 4.4: every pair of videos of the same collection, the regularisation tuned
by five-fold cross-validation on the training video. Folds are consecutive stretches of it, as neighbouring frames are
nearly alike. Besides consecutive frames, frames further apart are matched: the videos at a lower rate.
"""

from __future__ import annotations

import functools
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from nashlearn import NashMatcher
from nashlearn.datasets import load_tracking
from nashlearn.estimators._matching_input import examples
from nashlearn.tracking import assignments, describe, frame_pairs
from nashlearn.training.designs.pairs import PairFeatures, matching_games
from reproduce.networks import in_costs
from reproduce.protocol import FOLDS, Profile
from reproduce.references.ssvm_matching import structured_svm
from reproduce.run import carry_out
from reproduce.store import Store

__all__ = ["METHODS", "PAIRS", "STEPS", "chosen", "evaluate", "hamming", "run", "tune"]

PAIRS = (
    ("TUD-Campus", "TUD-Stadtmitte"),
    ("TUD-Stadtmitte", "TUD-Campus"),
    ("ETH-Bahnhof", "ETH-Sunnyday"),
    ("ETH-Pedcross2", "ETH-Sunnyday"),
    ("ETH-Sunnyday", "ETH-Bahnhof"),
    ("ETH-Pedcross2", "ETH-Bahnhof"),
    ("ETH-Bahnhof", "ETH-Pedcross2"),
    ("ETH-Sunnyday", "ETH-Pedcross2"),
)
STEPS = (1, 10)  # frames from one to the next
ALPHAS = (1e-1, 1e-2, 1e-3, 1e-4)
TUNING_TOL, FINAL_TOL = 1e-2, 1e-3


@functools.lru_cache(maxsize=6)
def _video(name: str, step: int) -> tuple[list[Any], list[np.ndarray]]:
    video = load_tracking(name)
    looks = describe(video.thumbs, video.hist)
    return frame_pairs(video.truth, looks, step), assignments(video.truth, step)


def _nash(X: list[Any], y: list[np.ndarray], alpha: float, smoothing: float, tol: float) -> tuple[Any, float]:
    matcher = NashMatcher(**in_costs(alpha, smoothing), tol=tol).fit(X, y)
    return matcher.predict, matcher.dual_gap_


def _ssvm(doubled: bool) -> Callable[..., tuple[Any, float]]:
    def train(X: list[Any], y: list[np.ndarray], alpha: float, smoothing: float, tol: float) -> tuple[Any, float]:
        trained = structured_svm(examples(X), y, alpha, doubled=doubled, tol=tol)

        def predict(X: list[Any]) -> list[np.ndarray]:
            given = examples(X)
            games = matching_games(given)
            return games.argmax(PairFeatures(given, games).scores(trained.w))

        return predict, trained.dual_gap

    return train


def _chance(X: list[Any], y: list[np.ndarray], alpha: float, smoothing: float, tol: float) -> tuple[Any, float]:
    rng = np.random.default_rng(0)

    def predict(X: list[Any]) -> list[np.ndarray]:
        answers = []
        for pairs, _, _ in X:
            n1, n2, _ = pairs.shape
            partners = np.concatenate([np.arange(n2), np.full(max(n1 - n2, 0), -1)])
            answers.append(rng.permutation(partners)[:n1])
        return answers

    return predict, 0.0


# How each method is trained, and the smoothings that are tuned with it.
METHODS: dict[str, tuple[Callable[..., tuple[Any, float]], tuple[float, ...]]] = {
    "nash": (_nash, (0.0, 1.0)),
    "ssvm": (_ssvm(False), (0.0,)),
    "ssvm doubled": (_ssvm(True), (0.0,)),
    "chance": (_chance, ()),
}


def hamming(predicted: np.ndarray, partners: np.ndarray, n2: int) -> tuple[int, int]:
    """Wrong left elements, and wrong invisible ones of the doubled matching, named in the way that suits it best.

    With ``E`` elements that enter in truth, ``E'`` by the prediction and ``C`` in both, ``max(E, E') - C`` of the
    invisible left nodes are paired wrongly whatever they are called.
    """
    here, there = (set(range(n2)) - set(answer[answer >= 0].tolist()) for answer in (predicted, partners))
    return int((predicted != partners).sum()), max(len(here), len(there)) - len(here & there)


def _judged(predict: Any, X: list[Any], y: list[np.ndarray]) -> tuple[list[int], list[int]]:
    counts = [
        hamming(answer, partners, example[0].shape[1])
        for answer, partners, example in zip(predict(X), y, X, strict=True)
    ]
    return [a for a, _ in counts], [b for _, b in counts]


def tune(key: list[Any]) -> dict[str, Any]:
    """Mistakes on one fold of the training video for one choice of parameters."""
    _, name, method, step, _, fold, alpha, smoothing = key
    X, y = _video(name, step)
    held = np.array_split(np.arange(len(X)), FOLDS)[fold]
    kept = np.setdiff1d(np.arange(len(X)), held)
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # unconverged fits compete as they are
        predict, gap = METHODS[method][0]([X[i] for i in kept], [y[i] for i in kept], alpha, smoothing, TUNING_TOL)
    wrong, entered = _judged(predict, [X[i] for i in held], [y[i] for i in held])
    return {"key": key, "mistakes": sum(wrong) + sum(entered), "gap": gap, "seconds": time.perf_counter() - begin}


def evaluate(key: list[Any]) -> dict[str, Any]:
    """Train on all of one video with the chosen parameters, and count mistakes in each frame of another."""
    _, name, method, step, _, test, alpha, smoothing = key
    begin = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        predict, gap = METHODS[method][0](*_video(name, step), alpha, smoothing, FINAL_TOL)
    X, y = _video(test, step)
    wrong, entered = _judged(predict, X, y)
    return {
        "key": key,
        "wrong": wrong,
        "entered": entered,
        "objects": [len(partners) for partners in y],
        "nodes": 2 * max(max(example[0].shape[:2]) for example in X),
        "gap": gap,
        "warned": sorted({type(warning.message).__name__ for warning in caught}),
        "seconds": time.perf_counter() - begin,
    }


def _choices(method: str, profile: Profile) -> list[tuple[float, float]]:
    return [(alpha, mu) for alpha in ALPHAS[:: profile.thin] for mu in METHODS[method][1][:: profile.thin]]


def chosen(store: Store, table: str, name: str, method: str, step: int, profile: Profile) -> tuple[float, float]:
    """The (alpha, smoothing) with the fewest mistakes over all folds, the most regularised of several."""
    mistakes = {
        choice: sum(store[[table, name, method, step, "fold", fold, *choice]]["mistakes"] for fold in range(FOLDS))
        for choice in _choices(method, profile)
    }
    return min(mistakes, key=mistakes.__getitem__) if mistakes else (ALPHAS[0], 0.0)


def run(table: str, profile: Profile, folder: Path, n_jobs: int = 1) -> Store:
    """Complete the store of Table XII; the reduced profile has the first pair, at its own rate."""
    store = Store(folder / f"{table}.jsonl")
    pairs, steps = PAIRS[: len(PAIRS) if profile.thin == 1 else 1], STEPS[:: profile.thin]
    videos = list(dict.fromkeys(train for train, _ in pairs))
    for step in steps:
        folds = [
            [table, name, method, step, "fold", fold, *choice]
            for name in videos
            for method in METHODS
            for choice in _choices(method, profile)
            for fold in range(FOLDS)
        ]
        carry_out(tune, folds, store, n_jobs, f"{table} tuning, {step} apart")
        tests = [
            [table, name, method, step, "test", test, *chosen(store, table, name, method, step, profile)]
            for name, test in pairs
            for method in METHODS
        ]
        carry_out(evaluate, tests, store, n_jobs, f"{table} videos, {step} apart")
    return store
