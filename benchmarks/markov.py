"""Sequence labelling beside python-crfsuite: one evaluation, whole trainings, and threads.

Trainings are compared twice: after equally many iterations, and where each stops by its own rule.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import measure, report
from benchmarks.sequences import Crfsuite, chunk_f1, chunking, letters
from nashlearn import NashTagger, training
from nashlearn.training.methods.descent import Descent
from nashlearn.training.objective import GameProblem

__all__ = ["run"]

ITERATIONS = 20  # of crfsuite, whose first is not like the others
GRID = {
    "OCR letters": [(s, a) for s in (0.2, 0.5, 1.0) for a in (1e-4, 1e-5)],
    "CoNLL-2000": [(s, 1e-5) for s in (0.2, 0.5)],
}
C2 = {"OCR letters": (0.1, 1.0), "CoNLL-2000": (1.0,)}  # the latter is crfsuite's own default
MAX_ITER = {"OCR letters": 100, "CoNLL-2000": 60}  # for both, where iterations are equal
UNLIMITED = 100_000  # iterations of ours, where only tol ends them

Split = tuple[Any, Any]


def _accuracy(answers: Any, truth: Any) -> float:
    return 100.0 * float(
        np.mean(np.concatenate([np.asarray(a).astype(int) == b for a, b in zip(answers, truth, strict=True)]))
    )


def _sets(most: int | None) -> dict[str, tuple[Split, Split, Split, Callable[[Any, Any], float]]]:
    """Training, validation and test sequences of each set, at most so many of each, and its measure."""
    X, y, folds = letters()

    def pick(mask: np.ndarray) -> Split:
        rows = np.flatnonzero(mask)[:most]
        return [X[i] for i in rows], [y[i] for i in rows]

    def part(Z: Any, t: Any) -> Split:
        return Z[:most], t[:most]

    Z, t = chunking("train")
    cut = 8000
    return {
        "OCR letters": (pick((folds > 0) & (folds < 9)), pick(folds == 9), pick(folds == 0), _accuracy),
        "CoNLL-2000": (part(Z[:cut], t[:cut]), part(Z[cut:], t[cut:]), part(*chunking("test")), chunk_f1),
    }


def _problem(X: Any, y: Any, n_jobs: int = 1) -> GameProblem:
    model = NashTagger(n_jobs=n_jobs)
    return model._in_memory(X, y, None)[0]


def _evaluations(name: str, X: Any, y: Any, repeats: int) -> dict[str, Any]:
    """CPU seconds of our evaluation and of a crfsuite iteration; wall seconds of ours on one and on two threads."""
    crf = Crfsuite(X, y)
    problem = _problem(X, y)
    evaluate, seconds = problem.evaluate, []

    def timed(w: np.ndarray, smoothing: float) -> Any:
        start = time.process_time()
        answer = evaluate(w, smoothing)
        seconds.append(time.process_time() - start)
        return answer

    def ours() -> float:
        seconds.clear()
        problem.evaluate = timed  # type: ignore[method-assign]
        training.train(problem, Descent((0.5,), 0.5), alpha=1e-5, tol=1e-9, max_iter=ITERATIONS)
        return float(np.mean(seconds[1:]))

    def theirs() -> float:
        took = []
        for iterations in (1, 1 + ITERATIONS):
            start = time.process_time()
            crf.train(c2=1.0, max_iterations=iterations)
            took.append(time.process_time() - start)
        return (took[1] - took[0]) / ITERATIONS

    evaluate(np.zeros(problem.n_weights), 0.5)  # compiled code is loaded
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # iterations are a setting here
        took = measure.interleaved({"ours": ours, "theirs": theirs}, repeats)
    w = 0.1 * np.random.default_rng(0).standard_normal(problem.n_weights)
    took["scattered"] = measure.per_call(lambda: evaluate(w, 0.5), least=1.0)
    walls = {}
    for jobs in (1, 2):
        many = _problem(X, y, jobs)
        many.evaluate(w, 0.5)
        times = []
        for _ in range(5):
            start = time.perf_counter()
            many.evaluate(w, 0.5)
            times.append(time.perf_counter() - start)
        walls[jobs] = min(times)
    return {"set": name, "weights": problem.n_weights, **took, "wall": walls}


def _fit(smoothing: float, alpha: float, max_iter: int, X: Any, y: Any) -> tuple[float, NashTagger]:
    # Alpha is against the loss in costs; the estimator divides its loss by 1 + smoothing.
    model = NashTagger(smoothing=smoothing, alpha=alpha * (1.0 + smoothing), max_iter=max_iter)
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # iterations are a setting here
        model.fit(X, y)
    return time.process_time() - start, model


def _crfsuite(
    name: str, train: Split, valid: Split, whole: Split, test: Split, measured: Callable[[Any, Any], float]
) -> list[dict[str, Any]]:
    """Tuned on the validation part by its own stopping rule, then stopped after as many iterations as ours, and not."""
    c2 = C2[name][0]
    if len(C2[name]) > 1:
        crf, scores = Crfsuite(*train), []
        for one in C2[name]:
            crf.train(c2=one)
            scores.append(measured(crf.predict(valid[0]), valid[1]))
        c2 = C2[name][int(np.argmax(scores))]
    records = []
    for stop, limit in (("iterations", {"max_iterations": MAX_ITER[name]}), ("own rule", {})):
        crf = Crfsuite(*whole)  # which keeps its parameters from one training to the next
        start = time.process_time()
        steps = crf.train(c2=c2, **limit)
        seconds = time.process_time() - start
        score = measured(crf.predict(test[0]), test[1])
        method = f"crfsuite, c2 = {c2:g}"
        records.append({"set": name, "method": method, "stop": stop, "s": seconds, "iterations": steps, "score": score})
    return records


def _ours(
    name: str, train: Split, valid: Split, whole: Split, test: Split, measured: Callable[[Any, Any], float]
) -> list[dict[str, Any]]:
    """Tuned on the validation part after so many iterations; the choice also until ``tol``, and with less smoothing."""
    limit, grid = MAX_ITER[name], GRID[name]
    scores = []
    for smoothing, alpha in grid:
        _, model = _fit(smoothing, alpha, limit, *train)
        scores.append(measured(model.predict(valid[0]), valid[1]))
    best, alpha = grid[int(np.argmax(scores))]
    runs = [(best, "iterations", limit), (best, "own rule", UNLIMITED)]
    runs += [(smoothing, "iterations", limit) for smoothing in (0.1, 0.0) if smoothing != best]
    records = []
    for smoothing, stop, most in runs:
        took, model = _fit(smoothing, alpha, most, *whole)
        note = " (chosen)" if smoothing == best else ""
        records.append(
            {
                "set": name,
                "method": f"NashTagger, smoothing {smoothing:g}, alpha {alpha:g}{note}",
                "stop": stop,
                "s": took,
                "iterations": model.n_iter_,
                "gap": model.dual_gap_,
                "score": measured(model.predict(test[0]), test[1]),
            }
        )
    return records


def _show_evaluations(records: list[dict[str, Any]]) -> dict[str, Any]:
    rows = [
        [
            r["set"],
            f"{r['weights']:,}",
            report.seconds(r["ours"]),
            report.seconds(r["theirs"]),
            report.ratio(r["ours"], r["theirs"]),
            report.ratio(r["scattered"], r["theirs"]),
            report.ratio(r["wall"][1], r["wall"][2]),
        ]
        for r in records
    ]
    return report.table(
        "One evaluation and one crfsuite iteration",
        "CPU seconds of loss and gradient at smoothing 0.5 on the whole training part, the same features (those seen "
        "with a label in CoNLL-2000), and of an iteration of python-crfsuite's L-BFGS (c2 = 1), its start taken off: "
        f"means over the first {ITERATIONS} iterations of each. *scattered*: ours at random weights, where more labels "
        "are in play. Speed-up: wall seconds on one thread over those on two.",
        ["set", "weights", "ours", "crfsuite", "ours / crfsuite", "scattered", "speed-up"],
        rows,
    )


def _show_trainings(records: list[dict[str, Any]]) -> dict[str, Any]:
    tol = NashTagger().tol
    return report.table(
        "Accuracy and training time",
        "Letters right on fold 0 after training on folds 1 to 9, and F1 of chunks; in percent. Smoothing, alpha and, "
        "for letters, c2 chosen on a validation part. CPU seconds of the final training, for ours with the reading of "
        "features, not for crfsuite. Stopped by *iterations*: both after the same number, or earlier by their own "
        "rule. By their *own rule*, each at its default: crfsuite when ten iterations improve its objective by less "
        f"than 1e-5 of it; ours at a certified gap of {tol:g}, without a limit on iterations. These rules ask for "
        "different accuracies of different objectives, so the times at which they stop say little alone.",
        ["set", "method", "stopped by", "percent", "time", "iterations", "gap"],
        [
            [
                r["set"],
                r["method"],
                r["stop"],
                f"{r['score']:.2f}",
                report.seconds(r["s"]),
                str(r["iterations"]),
                f"{r['gap']:.1e}" if "gap" in r else "–",
            ]
            for r in records
        ],
    )


def run(repeats: int = 3, most: int | None = None) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Tables and records of both sets; of at most so many sequences, to try the programme."""
    evaluations: list[dict[str, Any]] = []
    trainings: list[dict[str, Any]] = []
    for name, (train, valid, test, measured) in _sets(most).items():
        whole = [*train[0], *valid[0]], [*train[1], *valid[1]]
        evaluations.append(_evaluations(name, *whole, repeats))
        print(evaluations[-1], flush=True)
        for trained in (_crfsuite, _ours):
            trainings += trained(name, train, valid, whole, test, measured)
            print(trainings[-1], flush=True)
    return [_show_evaluations(evaluations), _show_trainings(trainings)], [*evaluations, *trainings]
