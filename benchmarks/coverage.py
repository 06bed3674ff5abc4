"""Whether certificates on new data keep their promise: bounds of ``certify`` and prices of ``calibrate``.

Populations are large pools of which everything is known: the examples of a fixed, fitted model, or losses made up to be
nasty. A draw takes ``n`` examples with replacement; the true mean is that of the pool. Coverage is the share of draws
whose interval holds it. Widths are medians over the first 500 draws, beside those of the exact binomial interval
(Clopper-Pearson) for as many errors at the rate of the losses' mean, and of mean plus and minus 1.96 standard errors,
which promises nothing.

``calibrate`` promises that the chosen price errs on at most ``max_loss`` of the rows that it answers; kept is the share
of draws in which that is so in the pool, or in which it refused.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from inspect import signature
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import betaincinv
from sklearn.datasets import make_classification

from benchmarks import report
from nashlearn import NashAbstainer, NashClassifier, NashTagger
from nashlearn.certificates import Losses, betting_order, mean_bounds, means_to_refute, refuted

__all__ = ["PAGE", "POOLS", "Covered", "Kept", "calibrated", "covered", "page", "run", "tables"]

CONFIDENCE = 0.95
CALIBRATION_PRICES = signature(NashAbstainer.calibrate).parameters["prices"].default
DRAWS, CALIBRATIONS = 10_000, 1_000
PAGE = Path(__file__).parents[1] / "docs/certificate.md"
MARKS = "<!-- coverage -->", "<!-- end of coverage -->"
WIDTHS = 500  # draws whose widths are looked at
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


def _row_costs() -> Losses:
    """Amounts differ from row to row, most are small, and none is above 10, which is known beforehand."""
    X, y = _rows()
    amounts = np.minimum(np.exp(np.random.default_rng(0).normal(size=y.size)), 10.0)
    costs, held = amounts[:, None, None] * COSTS / 10.0, slice(TRAIN, None)
    model = NashClassifier().fit(X[:TRAIN], y[:TRAIN], costs=costs[:TRAIN])
    return model._losses_of_answers(X[held], y[held], costs[held], (0.0, 10.0))


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
    "costs of each row": Pool(_row_costs, (50, 500)),
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


def _suspects(x: np.ndarray, truth: float, doubt: float) -> np.ndarray:
    """Of samples (draws, n) in [0, 1], those whose upper bound from betting may lie below the true mean.

    All means of the grid from an upper bound on are refuted. So none lies below the truth unless the largest mean of
    the grid below the truth is refuted, and that is the only one at which the capital has to be computed.
    """
    x = x[:, betting_order(x.shape[1])]
    grids = [means_to_refute(sample) for sample in x]
    below = np.array([g[max(int(np.searchsorted(g, truth)) - 1, 0)] for g in grids])
    return (below < truth) & refuted(x.T, below, doubt)


def covered(losses: Losses, n: int, draws: int, seed: int = 0, confidence: float = CONFIDENCE) -> Covered:
    """How often the interval of ``n`` examples held the mean of the pool.

    The intervals of the first 500 draws are computed, whose widths these are. Of all others, only those that can miss.
    """
    rng = np.random.default_rng(seed)
    values, low, high, binary = losses
    tail, truth, scale = 0.5 * (1.0 - confidence), float(values.mean()), high - low
    drawn = values[rng.integers(values.size, size=(draws, n))]
    look = np.arange(draws) < WIDTHS
    if binary:
        look[:] = True
    else:
        x, middle = (drawn - low) / scale, (truth - low) / scale
        look |= _suspects(x, middle, tail) | _suspects(1.0 - x, 1.0 - middle, tail)
    upper, lower = np.full(draws, np.inf), np.full(draws, -np.inf)
    for i in np.flatnonzero(look):
        _, upper[i], lower[i], _ = mean_bounds(drawn[i], low, high, confidence, binary=binary)
    slack = 1e-12 * scale
    too_low, too_high = float((upper < truth - slack).mean()), float((lower > truth + slack).mean())
    some = drawn[:WIDTHS]
    errors = (some.mean(axis=1) - low) / scale * n
    exact = betaincinv(errors + 1, np.maximum(n - errors, 1e-9), 1 - tail)
    exact -= betaincinv(np.maximum(errors, 1e-9), n - errors + 1, tail)
    normal = 2 * 1.96 * some.std(axis=1) / np.sqrt(n)
    widths = np.median((upper - lower)[:WIDTHS]), np.median(exact) * scale, np.median(normal)
    return Covered(truth, 1.0 - too_low - too_high, too_low, too_high, *map(float, widths))


PROMISES = (
    (0.12, 2000, CALIBRATION_PRICES),
    (0.15, 500, CALIBRATION_PRICES),
    (0.15, 2000, CALIBRATION_PRICES),
    (0.2, 500, CALIBRATION_PRICES),
    (None, 500, tuple(np.linspace(0.2, 0.3, 16).tolist())),
)
TEMPTING = "less than any of 16 close prices keeps"


class Kept(NamedTuple):
    """What was seen of calibrated prices."""

    kept: float
    refused: float
    answered: float
    error: float


def calibrated(
    max_loss: float | None, n: int, draws: int, seed: int = 0, prices: Sequence[float] = CALIBRATION_PRICES
) -> Kept:
    """How often the price that ``n`` rows chose errs on no more than ``max_loss`` of the answered rows of the pool.

    Where ``max_loss`` is None it is just below the least error rate of all ``prices``: each of them breaks the promise.
    """
    model, X, y = abstainer()
    if max_loss is None:
        seen = [model._priced_at(price)._wrong(X, y) for price in prices]
        max_loss = min(float(wrong[answered].mean()) for wrong, answered in seen) - 1e-6
    rng = np.random.default_rng(seed)
    truth: dict[float, tuple[float, float]] = {}
    found: list[tuple[float, float]] = []
    for _ in range(draws):
        rows = rng.integers(y.size, size=n)
        try:
            chosen = model.calibrate(X[rows], y[rows], max_loss, CONFIDENCE, prices=prices)
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


def run(draws: int = DRAWS, calibrations: int = CALIBRATIONS) -> tuple[list[dict[str, Any]], Any]:
    """All pools, and five promises of ``calibrate``."""
    records: dict[str, Any] = {"draws": draws, "calibrations": calibrations, "coverage": [], "calibrate": []}
    for name, pool in POOLS.items():
        losses = pool.make()
        for n in pool.sizes:
            seen = covered(losses, n, draws)
            records["coverage"].append({"pool": name, "n": n, "exact": losses.binary, **seen._asdict()})
            print(name, n, seen, flush=True)
    for max_loss, n, prices in PROMISES:
        kept = calibrated(max_loss, n, calibrations, prices=prices)
        records["calibrate"].append({"max_loss": max_loss, "n": n, **kept._asdict()})
        print(max_loss, n, kept, flush=True)
    return tables(records), records


def tables(records: dict[str, Any]) -> list[dict[str, Any]]:
    """What was seen, for people."""
    rows = []
    for seen in records["coverage"]:
        shares = [f"{100 * seen[name]:.2f} %" for name in ("coverage", "above", "below")]
        widths = [f"{seen[name]:.4f}" for name in ("width", "binomial", "normal")]
        kind = "binomial" if seen["exact"] else "betting"
        rows.append([seen["pool"], str(seen["n"]), kind, f"{seen['truth']:.4f}", *shares, *widths])
    promises = [
        [
            TEMPTING if seen["max_loss"] is None else f"{seen['max_loss']:g}",
            str(seen["n"]),
            *(f"{100 * seen[name]:.1f} %" for name in Kept._fields),
        ]
        for seen in records["calibrate"]
    ]
    columns = ["losses", "n", "bound", "true mean", "covered", "upper too low", "lower too high", "median width"]
    columns += ["Clopper-Pearson", "±1.96 s.e."]
    note = f"{records['draws']:,} draws with replacement from a pool whose mean is known; 95 % asked for. Widths are "
    note += "medians over 500 draws; those of Clopper-Pearson are for as many errors at the rate of the mean loss."
    said = (
        f"{records['calibrations']:,} draws, 95 % asked for; medians over draws of what the chosen price does in the "
    )
    said += "pool."
    return [
        report.table("How often bounds hold, and how wide they are", note, columns, rows),
        report.table(
            "Prices that calibrate chooses",
            said,
            ["max_loss", "n", "kept", "refused", "answered", "wrong of these"],
            promises,
        ),
    ]


def page(text: str, content: dict[str, Any]) -> str:
    """The page of the documentation with the stored tables between its marks."""
    before, _, rest = text.partition(MARKS[0])
    shown = "\n".join(report.show(one) for one in content["tables"])
    return f"{before}{MARKS[0]}\n\n{shown}\n{MARKS[1]}{rest.partition(MARKS[1])[2]}"


def main() -> None:
    """Show the stored results on the documentation's page, or look at fewer draws and keep nothing."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage", description=__doc__)
    parser.add_argument("--page", action="store_true", help="write the documentation's page from the stored results")
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--calibrations", type=int, default=50)
    given = parser.parse_args()
    if given.page:
        content = json.loads((report.RESULTS / "coverage.json").read_text(encoding="utf-8"))
        PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), content), encoding="utf-8")
        return
    for one in run(given.draws, given.calibrations)[0]:
        print(report.show(one))


if __name__ == "__main__":
    main()
