"""Whether certificates on new data keep their promise: bounds of ``certify`` and prices of ``calibrate``.

Populations are large pools of which everything is known: the examples of a fixed, fitted model, or losses made up to be
nasty. A draw takes ``n`` examples with replacement; the true mean is that of the pool. Coverage is the share of draws
whose interval holds it. Widths are medians over draws, beside those of the exact binomial interval (Clopper-Pearson)
for as many errors at the rate of the losses' mean, and of mean plus and minus 1.96 standard errors, which promises
nothing.

``calibrate`` promises that the chosen price errs on at most ``max_loss`` of the rows that it answers; kept is the share
of draws in which that is so in the pool, or in which it refused.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import betaincinv
from sklearn.datasets import make_classification

from benchmarks import report
from nashlearn import NashAbstainer, NashClassifier, NashTagger
from nashlearn.certificates import Losses, mean_bounds

__all__ = ["POOLS", "Covered", "Kept", "calibrated", "covered", "run"]

CONFIDENCE = 0.95
DRAWS, CALIBRATIONS = 10_000, 1_000
COSTS = np.array([[0.0, 1.0, 10.0], [1.0, 0.0, 2.0], [3.0, 0.5, 0.0]])
TRAIN, POOL = 500, 20_000


def _rows() -> tuple[np.ndarray, np.ndarray]:
    return make_classification(
        TRAIN + POOL, 10, n_informative=6, n_classes=3, class_sep=1.5, flip_y=0.05, random_state=0
    )


def _errors() -> Losses:
    X, y = _rows()
    return NashClassifier().fit(X[:TRAIN], y[:TRAIN])._losses_of_answers(X[TRAIN:], y[TRAIN:])


def _costs() -> Losses:
    X, y = _rows()
    return NashClassifier(COSTS).fit(X[:TRAIN], y[:TRAIN])._losses_of_answers(X[TRAIN:], y[TRAIN:])


def _strategy() -> Losses:
    X, y = _rows()
    return NashClassifier().fit(X[:TRAIN], y[:TRAIN])._losses_of_strategy(X[TRAIN:], y[TRAIN:])


def abstainer() -> tuple[NashAbstainer, np.ndarray, np.ndarray]:
    """A fitted model, and the rows and labels of its pool."""
    X, y = _rows()
    return NashAbstainer(0.3).fit(X[:TRAIN], y[:TRAIN]), X[TRAIN:], y[TRAIN:]


def _abstentions() -> Losses:
    model, X, y = abstainer()
    return model._abstentions(X, y)


def _priced() -> Losses:
    model, X, y = abstainer()
    return model._losses_of_answers(X, y)


def sequences(n: int, seed: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Hidden Markov chains of 2 to 14 positions with three states, seen through noise."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for length in rng.integers(2, 15, size=n):
        states = [int(rng.integers(3))]
        for _ in range(length - 1):
            states.append(states[-1] if rng.random() < 0.7 else int(rng.integers(3)))
        y.append(np.array(states))
        X.append(np.eye(3)[states] + rng.normal(scale=0.7, size=(length, 3)))
    return X, y


def _sequences() -> Losses:
    X, y = sequences(200 + POOL // 4, 0)
    return NashTagger().fit(X[:200], y[:200])._losses_of_answers(X[200:], y[200:])


def _made(values: Callable[[np.random.Generator], np.ndarray]) -> Callable[[], Losses]:
    return lambda: Losses(values(np.random.default_rng(0)), 0.0, 1.0)


def _rare(rng: np.random.Generator) -> np.ndarray:
    return np.where(rng.random(POOL) < 0.01, 1.0, 0.02 * rng.random(POOL))


class Pool(NamedTuple):
    """Losses of a population, and the sizes of samples that are drawn of it."""

    make: Callable[[], Losses]
    sizes: tuple[int, ...]


POOLS = {
    "errors of a classifier": Pool(_errors, (50, 500)),
    "costs 0 to 10": Pool(_costs, (50, 500)),
    "strategy of a classifier": Pool(_strategy, (50, 500)),
    "cost with abstention": Pool(_priced, (50, 500)),
    "share of abstentions": Pool(_abstentions, (50, 500)),
    "tagged sequences": Pool(_sequences, (50, 500)),
    "nasty: 1 % lose all": Pool(_made(_rare), (50, 500)),
    "nasty: few rows": Pool(_made(lambda rng: rng.random(POOL) ** 4), (1, 5)),
    "nasty: never a loss": Pool(_made(lambda rng: np.zeros(POOL)), (50, 500)),
    "nasty: all or nothing, not known to be": Pool(_made(lambda rng: (rng.random(POOL) < 0.1) * 1.0), (50, 500)),
}


class Covered(NamedTuple):
    """What was seen of the intervals of a pool."""

    truth: float
    coverage: float
    above: float
    below: float
    width: float
    binomial: float
    normal: float


def covered(losses: Losses, n: int, draws: int, seed: int = 0) -> Covered:
    """How often the interval of ``n`` examples held the mean of the pool."""
    rng = np.random.default_rng(seed)
    values, low, high, binary = losses
    truth, found, normal = float(values.mean()), np.empty((draws, 3)), np.empty(draws)
    for i in range(draws):
        drawn = values[rng.integers(values.size, size=n)]
        mean, found[i, 0], found[i, 1], _ = mean_bounds(drawn, low, high, CONFIDENCE, binary=binary)
        found[i, 2] = (mean - low) / (high - low) * n
        normal[i] = 2 * 1.96 * drawn.std() / np.sqrt(n)
    upper, lower, errors = found.T
    slack = 1e-12 * (high - low)
    tail = 0.5 * (1.0 - CONFIDENCE)
    exact = betaincinv(errors + 1, np.maximum(n - errors, 1e-9), 1 - tail)
    exact -= betaincinv(np.maximum(errors, 1e-9), n - errors + 1, tail)
    too_low, too_high = float((upper < truth - slack).mean()), float((lower > truth + slack).mean())
    widths = np.median(upper - lower), np.median(exact) * (high - low), np.median(normal)
    return Covered(truth, 1.0 - too_low - too_high, too_low, too_high, *map(float, widths))


class Kept(NamedTuple):
    """What was seen of calibrated prices."""

    kept: float
    refused: float
    answered: float
    error: float


def calibrated(max_loss: float, n: int, draws: int, seed: int = 0) -> Kept:
    """How often the price that ``n`` rows chose errs on no more than ``max_loss`` of the answered rows of the pool."""
    model, X, y = abstainer()
    rng = np.random.default_rng(seed)
    truth: dict[float, tuple[float, float]] = {}
    found: list[tuple[float, float]] = []
    for _ in range(draws):
        rows = rng.integers(y.size, size=n)
        try:
            chosen = model.calibrate(X[rows], y[rows], max_loss, CONFIDENCE)
        except ValueError:
            continue
        price = float(chosen.abstain_cost)
        if price not in truth:
            wrong, answered = chosen._wrong(X, y)
            truth[price] = float(wrong[answered].mean()), float(answered.mean())
        found.append(truth[price])
    error, answered = np.array(found).T if found else (np.zeros(1), np.zeros(1))
    broken = int((np.array([e for e, _ in found]) > max_loss).sum())
    return Kept(1 - broken / draws, 1 - len(found) / draws, float(np.median(answered)), float(np.median(error)))


def _figures(*values: float) -> list[str]:
    return [f"{value:.4f}" for value in values]


def run(draws: int = DRAWS, calibrations: int = CALIBRATIONS) -> tuple[list[dict[str, Any]], Any]:
    """All pools, and four promises of ``calibrate``."""
    records: dict[str, Any] = {"draws": draws, "calibrations": calibrations, "coverage": [], "calibrate": []}
    rows = []
    for name, pool in POOLS.items():
        losses = pool.make()
        for n in pool.sizes:
            seen = covered(losses, n, draws)
            records["coverage"].append({"pool": name, "n": n, "exact": losses.binary, **seen._asdict()})
            kind = "binomial" if losses.binary else "betting"
            shares = [f"{100 * share:.2f} %" for share in (seen.coverage, seen.above, seen.below)]
            rows.append([name, str(n), kind, *_figures(seen.truth), *shares, *_figures(*seen[4:])])
            print(*rows[-1], sep="  ", flush=True)
    promises = []
    for max_loss, n in ((0.12, 2000), (0.15, 500), (0.15, 2000), (0.2, 500)):
        kept = calibrated(max_loss, n, calibrations)
        records["calibrate"].append({"max_loss": max_loss, "n": n, **kept._asdict()})
        promises.append([f"{max_loss:g}", str(n), *(f"{100 * share:.1f} %" for share in kept)])
        print(*promises[-1], sep="  ", flush=True)
    columns = ["losses", "n", "bound", "true mean", "covered", "upper too low", "lower too high", "median width"]
    columns += ["Clopper-Pearson", "±1.96 s.e."]
    note = f"{draws:,} draws with replacement from a pool whose mean is known; 95 % asked for."
    said = f"{calibrations:,} draws, 95 % asked for; medians over draws of what the chosen price does in the pool."
    names = ["max_loss", "n", "kept", "refused", "answered", "wrong of these"]
    tables = [
        report.table("Certificates on new data", note, columns, rows),
        report.table("Prices that calibrate chooses", said, names, promises),
    ]
    return tables, records


def main() -> None:
    """Run with other numbers of draws and keep nothing, for a look."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage", description=__doc__)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--calibrations", type=int, default=50)
    given = parser.parse_args()
    for one in run(given.draws, given.calibrations)[0]:
        print(report.show(one))


if __name__ == "__main__":
    main()
