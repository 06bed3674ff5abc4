"""F1 on real sets with rare positives: NashFScore beside logistic regression with a threshold, by a fixed protocol.

**Sets.** Those of :mod:`benchmarks.evidence_tasks`: the positive class is the rarest label of at least 24 rows, or the
highest fifth of graded sets; sets without such a label of at most a quarter of the rows are left out. At most 2,000
rows, ten stratified halves, features standardised by the training half. The defaults are those of NashClassifier.

**Models.** ``default``: NashFScore as it is; logistic regression (``C=1``) with the threshold that is best for the
probabilities of five held-out folds together, by sorting (scikit-learn's ``TunedThresholdClassifierCV`` takes far
longer for the same); the same with balanced class weights; logistic regression with the plug-in threshold, half the
largest F1 that its own probabilities promise on the training rows; and NashFScore with a threshold searched on its
scores in the same way. ``tuned``: ``C`` from 0.1, 1 and 10 (``alpha = 2 / (n C)`` for ours), by the F1 of the answers
to three held-out folds together; the threshold of the baselines is the best for those same held-out probabilities.
Ours has none.

Two things were changed during the first runs, for all models alike, to save time: this search by sorting took the place
of ``TunedThresholdClassifierCV``, and three values of ``C`` that of five. NashFScore with a searched threshold was
added last.

**Figures.** F1 on the test half, mean over splits; sets are compared by Wilcoxon's signed-rank test, two-sided, and
``p >= 0.05`` is called a tie. Seconds are CPU seconds of one fit at defaults, the threshold's search included.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
import warnings
from functools import partial
from typing import Any

import joblib
import numpy as np
from scipy import special
from scipy.stats import wilcoxon
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import StratifiedKFold

from benchmarks import report
from benchmarks.evidence_tasks import FRESH, Split, labelled, splits
from nashlearn import NashFScore
from nashlearn.datasets import multiclass_names

__all__ = ["best_threshold", "compared", "peer", "positives", "run", "table", "times"]

SETS = (*(name for name in multiclass_names() if name != "iris"), *FRESH)
CS = (0.1, 1.0, 10.0)
SPLITS = 10
BASE = "LR + threshold"
TUNED = ("NashFScore", BASE, "LR plug-in", "weighted LR + threshold")
MODELS = (*TUNED, "NashFScore + threshold")
_LEAST, _SHARE = 24, 0.25


def positives(name: str) -> np.ndarray | None:
    """Codes 0 and 1 of a set by the rule above; None where it has no such label."""
    _, y = labelled(name)
    counts = np.bincount(y)
    graded = name in FRESH and name != "digits"
    rare = counts.size - 1 if graded else int(np.where(counts >= _LEAST, counts, counts.max()).argmin())
    return (y == rare).astype(np.int64) if _LEAST <= counts[rare] <= _SHARE * y.size else None


def best_threshold(y: np.ndarray, proba: np.ndarray) -> tuple[float, float]:
    """The largest F1 of ``proba >= threshold`` over all thresholds, and that threshold. ``y`` may be probabilities."""
    order = np.argsort(-proba, kind="stable")
    hits = np.cumsum(y[order])
    f1 = 2.0 * hits / (np.arange(1, y.size + 1) + y.sum())
    last = np.append(proba[order][1:] != proba[order][:-1], True)  # equal probabilities are answered alike
    i = int(np.where(last, f1, -1.0).argmax())
    after = proba[order][i + 1] if i + 1 < y.size else 0.0
    return float(f1[i]), 0.5 * float(proba[order][i] + after)


def _logistic(c: float, weight: Any = None) -> LogisticRegression:
    return LogisticRegression(C=c, class_weight=weight, max_iter=2000)


class Thresholded(ClassifierMixin, BaseEstimator):
    """A model with the threshold that is best for held-out scores, between 0 and 1 by the logistic function."""

    def __init__(self, model: Any):
        self.model = model

    def fit(self, X: np.ndarray, y: np.ndarray) -> Thresholded:
        held = np.empty(y.size)
        for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
            held[test] = special.expit(clone(self.model).fit(X[train], y[train]).decision_function(X[test]))
        self.level_ = best_threshold(y, held)[1]
        self.model_ = clone(self.model).fit(X, y)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return special.expit(self.model_.decision_function(X)) >= self.level_


class PlugIn(ClassifierMixin, BaseEstimator):
    """Logistic regression that calls positive what has half the largest F1 that its probabilities promise."""

    def __init__(self, c: float = 1.0):
        self.c = c

    def fit(self, X: np.ndarray, y: np.ndarray) -> PlugIn:
        self.model_ = _logistic(self.c).fit(X, y)
        own = self.model_.predict_proba(X)[:, 1]
        self.level_ = 0.5 * best_threshold(own, own)[0]
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.model_.predict_proba(X)[:, 1] >= self.level_


def _defaults(split: Split) -> dict[str, tuple[float, float]]:
    """F1 on the test half and CPU seconds of each model at its defaults."""
    ours = NashFScore(random_state=0)
    models = (
        ours, Thresholded(_logistic(1.0)), PlugIn(), Thresholded(_logistic(1.0, "balanced")), Thresholded(ours),
    )  # fmt: skip
    found = {}
    for name, model in zip(MODELS, models, strict=True):
        began = time.process_time()
        model.fit(split.X, split.y)
        taken = time.process_time() - began
        found[name] = float(f1_score(split.y_test, model.predict(split.X_test))), taken
    return found


def _held_out(make: Any, split: Split, folds: list[Any]) -> float:
    """F1 of the answers to held-out folds together."""
    answers = np.empty(split.y.size)
    for train, test in folds:
        answers[test] = make(split.y[train].size).fit(split.X[train], split.y[train]).predict(split.X[test])
    return float(f1_score(split.y, answers))


def _tuned(split: Split) -> dict[str, float]:
    """F1 on the test half of each model at the ``C`` that held-out folds choose."""
    folds = list(StratifiedKFold(3, shuffle=True, random_state=0).split(split.X, split.y))
    found = {}
    kinds = {
        "NashFScore": lambda c, n: NashFScore(alpha=2.0 / (n * c), random_state=0),
        "LR plug-in": lambda c, n: PlugIn(c),
    }
    for name, make in kinds.items():
        held = {c: _held_out(partial(make, c), split, folds) for c in CS}
        model = make(max(CS, key=held.__getitem__), split.y.size).fit(split.X, split.y)
        found[name] = float(f1_score(split.y_test, model.predict(split.X_test)))
    for name, weight in ((BASE, None), ("weighted LR + threshold", "balanced")):
        best = (-1.0, 0.0, 0.0)
        for c in CS:
            proba = np.empty(split.y.size)
            for train, test in folds:
                model = _logistic(c, weight).fit(split.X[train], split.y[train])
                proba[test] = model.predict_proba(split.X[test])[:, 1]
            best = max(best, (*best_threshold(split.y, proba), c))
        test = _logistic(best[2], weight).fit(split.X, split.y).predict_proba(split.X_test)[:, 1]
        found[name] = float(f1_score(split.y_test, test >= best[1]))
    return found


def compared(figures: dict[str, dict[str, float]], one: str, other: str) -> dict[str, Any]:
    """Wins and losses of one model over sets, means, and Wilcoxon's p."""
    a, b = (np.array([own[name] for own in figures.values()]) for name in (one, other))
    p = 1.0 if np.array_equal(a, b) else float(wilcoxon(a, b).pvalue)
    return {
        "one": one, "other": other, "means": [float(a.mean()), float(b.mean())],
        "wins": int((a > b).sum()), "losses": int((a < b).sum()), "p": p,
        "verdict": "tie" if p >= 0.05 else "better" if a.mean() > b.mean() else "worse",
    }  # fmt: skip


def _judged(name: str, y: np.ndarray) -> dict[str, Any]:
    """All figures of a set: means over splits."""
    warnings.simplefilter("ignore")  # of logistic regression, whose figures are what they are
    runs = [(_defaults(split), _tuned(split)) for split in splits(name, y, SPLITS)]
    return {
        "rows": int(y.size),
        "share": float(y.mean()),
        "default": {model: float(np.mean([own[model][0] for own, _ in runs])) for model in MODELS},
        "seconds": {model: float(np.mean([own[model][1] for own, _ in runs])) for model in MODELS},
        "tuned": {model: float(np.mean([own[model] for _, own in runs])) for model in TUNED},
    }


def _sets() -> dict[str, Any]:
    tasks = {name: y for name in SETS if (y := positives(name)) is not None}
    figures = joblib.Parallel(2, verbose=5)(joblib.delayed(_judged)(name, y) for name, y in tasks.items())
    found = dict(zip(tasks, figures, strict=True))
    result: dict[str, Any] = {"sets": found}
    for how in ("default", "tuned"):
        figures = {name: own[how] for name, own in found.items()}
        others = (MODELS if how == "default" else TUNED)[1:]
        result[how] = [compared(figures, "NashFScore", other) for other in others]
    times = np.array([[own["seconds"][model] for model in ("NashFScore", BASE)] for own in found.values()])
    result["time"] = {
        "median": float(np.median(times[:, 0] / times[:, 1])),
        "worst": float((times[:, 0] / times[:, 1]).max()),
    }
    return result


def _large() -> dict[str, Any]:
    """One fit of 500,000 rows with 30 features, a twentieth of them positive."""
    X, y = make_classification(500_000, 30, n_informative=15, weights=[0.95], flip_y=0.02, random_state=0)
    models = {
        "NashFScore": NashFScore(verbose=1, random_state=0),
        BASE: Thresholded(_logistic(1.0)),
        "NashFScore + threshold": Thresholded(NashFScore(random_state=0)),
    }
    found: dict[str, Any] = {}
    for name, model in models.items():
        began, cpu = time.perf_counter(), time.process_time()
        model.fit(X, y)
        taken = {"wall": time.perf_counter() - began, "cpu": time.process_time() - cpu}
        found[name] = {**taken, "score": float(f1_score(y, model.predict(X)))}
    ours = models["NashFScore"]
    return {**found, "fits": len(ours.history_), "fixed_point": ours.fixed_point_}


def _ap_perf() -> dict[str, Any]:
    """AP-Perf 0.1.1 (a linear layer, Adam at 0.01, batches of 25, 10 epochs) on a small set, two splits."""
    import torch
    from ap_perf import MetricLayer, PerformanceMetric

    class F1(PerformanceMetric):
        def define(self, C: Any) -> Any:
            return (2 * C.tp) / (C.ap + C.pp)

    found = {}
    for name in ("glass",):
        runs = []
        for split in splits(name, positives(name), 2):
            torch.manual_seed(0)
            metric = F1()
            metric.initialize()
            metric.enforce_special_case_positive()
            net, criterion = torch.nn.Linear(split.X.shape[1], 1).double(), MetricLayer(metric)
            optimiser = torch.optim.Adam(net.parameters(), lr=0.01, weight_decay=1e-3)
            X, y = torch.from_numpy(split.X), torch.from_numpy(split.y.astype(np.float64))
            began = time.process_time()
            for _ in range(10):
                for batch in torch.randperm(len(y)).split(25):
                    optimiser.zero_grad()
                    criterion(net(X[batch]).squeeze(1), y[batch]).backward()
                    optimiser.step()
            theirs = time.process_time() - began
            answers = (net(torch.from_numpy(split.X_test)).squeeze(1) > 0).numpy()
            began = time.process_time()
            model = NashFScore(random_state=0).fit(split.X, split.y)
            ours = time.process_time() - began
            scores = f1_score(split.y_test, answers), f1_score(split.y_test, model.predict(split.X_test))
            runs.append((*scores, theirs, ours))
        means = np.mean(runs, axis=0).tolist()
        found[name] = dict(zip(("AP-Perf", "NashFScore", "AP-Perf seconds", "NashFScore seconds"), means, strict=True))
    return found


PARTS = {"sets": _sets, "large": _large, "ap_perf": _ap_perf}


def run(parts: list[str]) -> None:
    """Run parts, and keep the others' results."""
    path = report.RESULTS / "fscore.json"
    kept = json.loads(path.read_text()) if path.exists() else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for part in parts:
            kept[part] = PARTS[part]()
            path.write_text(json.dumps({**kept, "machine": report.machine()}, indent=1, sort_keys=True) + "\n")


def table() -> str:
    """The table of ``docs/fscore.md``."""
    result = json.loads((report.RESULTS / "fscore.json").read_text())["sets"]
    lines = [
        "| F1, mean over sets | default | NashFScore against it | tuned | NashFScore against it |",
        "|---|---|---|---|---|",
    ]
    own = [100.0 * result[how][0]["means"][0] for how in ("default", "tuned")]
    lines.append(f"| NashFScore | {own[0]:.2f} | | {own[1]:.2f} | |")
    for default, tuned in itertools.zip_longest(result["default"], result["tuned"]):
        cells = [
            f"{100.0 * one['means'][1]:.2f} | {one['wins']}–{one['losses']}, p = {one['p']:.2g}: {one['verdict']}"
            if one
            else "|"
            for one in (default, tuned)
        ]
        lines.append(f"| {default['other']} | {cells[0]} | {cells[1]} |")
    return "\n".join(lines)


def times() -> str:
    """The sentence on time of ``docs/fscore.md``."""
    result = json.loads((report.RESULTS / "fscore.json").read_text())
    ratio = result["sets"]["time"]
    text = (
        f"A fit takes {ratio['median']:.1f} times as long as logistic regression with its threshold's search (median "
        f"over sets; at most {ratio['worst']:.1f} times)."
    )
    if "large" in result:
        large = result["large"]
        ours, base, both = (large[name] for name in ("NashFScore", BASE, "NashFScore + threshold"))
        text += (
            f" 500,000 synthetic rows with 30 features took {ours['cpu']:.0f} CPU seconds in {large['fits']} fits, "
            f"against {base['cpu']:.0f}; but their F1 is {ours['score']:.3f} against {base['score']:.3f} (on the rows "
            f"of training), and {both['score']:.3f} with a threshold searched on our scores, in {both['cpu']:.0f} "
            "seconds."
        )
    return text


def peer() -> str:
    """The sentence on AP-Perf of ``docs/fscore.md``."""
    one = json.loads((report.RESULTS / "fscore.json").read_text())["ap_perf"]["glass"]
    return (
        f"took {one['AP-Perf seconds']:.1f} CPU seconds for ten epochs on 102 rows of glass, where a fit here takes "
        f"{one['NashFScore seconds']:.2f}; F1 on the other half was {100 * one['AP-Perf']:.1f} against "
        f"{100 * one['NashFScore']:.1f}, two splits."
    )


def main() -> None:
    """``python -m benchmarks.fscore [part ...]``; AP-Perf, which must be installed, is left out by default."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fscore")
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], metavar="part", help=" | ".join(PARTS))
    run(parser.parse_args().parts or ["sets", "large"])


if __name__ == "__main__":
    main()
