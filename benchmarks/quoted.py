"""What stored results say: functions that return figures as the README and other pages print them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from typing import Any

from benchmarks import report
from benchmarks.figures import ROOT

CAP = 60.0  # seconds, of the benchmark of training
_FULL = "reproduce/results/full"
_COUNTS = ["none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]


def read(path: str) -> Any:
    """A result file: JSON, or a list of the records of JSON lines."""
    text = (ROOT / path).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()] if path.endswith(".jsonl") else json.loads(text)


def records(part: str) -> Any:
    """The records of a benchmark."""
    return read(f"benchmarks/results/{part}.json")["records"]


def short(value: float, digits: int = 2) -> str:
    """So many significant digits, without an exponent."""
    rounded = float(f"{value:.{digits}g}")
    decimals = max(digits - 1 - math.floor(math.log10(abs(rounded))), 0) if rounded else 0
    return f"{rounded:,.{decimals}f}"


def floor(value: float) -> str:
    """The two leading digits, the rest cut off: a bound from below stays one."""
    scale = 10 ** (math.floor(math.log10(value)) - 1)
    return f"{math.floor(value / scale) * scale:,.0f}"


def span(values: Iterable[float], digits: int = 2) -> tuple[str, str]:
    """Smallest and largest value."""
    known = list(values)
    return short(min(known), digits), short(max(known), digits)


def fixed(values: Iterable[float], decimals: int) -> tuple[str, ...]:
    """Each value with so many decimals."""
    return tuple(f"{value:.{decimals}f}" for value in values)


# Linear training.


def training_row(record: dict[str, Any]) -> tuple[str, ...]:
    """The times of a row of the README's table."""
    names = ("ours 0.001", "liblinear 0.001", "logistic", "ours 1e-06", "liblinear 1e-06")
    return tuple(report.seconds(record["seconds"][name], CAP) for name in names)


def _against(peer: str, chosen: Iterable[dict[str, Any]]) -> list[float]:
    """Times of a peer over ours at both tolerances, bounds from below where the peer was over the cap."""
    tolerances = ("0.001", "1e-06")
    return [(r["seconds"][f"{peer} {t}"] or CAP) / r["seconds"][f"ours {t}"] for r in chosen for t in tolerances]


def liblinear_where_many() -> tuple[str, str]:
    """How many times as fast as LIBLINEAR where examples are plenty, at least and at most."""
    ratios = _against("liblinear", (r for r in records("training") if r["data"] in ("dense", "mid", "noisy")))
    return floor(min(ratios)), floor(max(ratios))


def liblinear_where_few() -> tuple[str, str]:
    """Our time over LIBLINEAR's on sparse text, and on digits at C = 1."""
    chosen = [r for r in records("training") if r["data"] == "sparse" or (r["data"] == "digits" and r["C"] == 1.0)]
    return span(1.0 / ratio for ratio in _against("liblinear", chosen))


def logistic() -> tuple[str, str]:
    """Our time to a gap of 1e-3 over LogisticRegression's at its default tolerance."""
    return span(r["seconds"]["ours 0.001"] / r["seconds"]["logistic"] for r in records("training"))


def logistic_has_equal_accuracy() -> bool:
    """Whether the benchmark was run since it stops LogisticRegression at the same distances from the optimum."""
    return all("logistic 0.001" in r["seconds"] for r in records("training"))


def logistic_at_equal_accuracy() -> tuple[str, str]:
    """Our time over LogisticRegression's, both as close to their optimum."""
    return span(1.0 / ratio for ratio in _against("logistic", records("training")))


def growth() -> tuple[str, ...]:
    """Exponents of n, k and d."""
    exponents = {r["axis"]: r["exponent"] for r in records("growth") if "axis" in r}
    return fixed((exponents[axis] for axis in "nkd"), 2)


def costs() -> tuple[str, ...]:
    """Microseconds of a game with ten labels; a warm HiGHS's time over ours; the sizes."""
    found = records("costs")
    ten = next(r["ours_s"] for r in found if r["k"] == 10)
    sizes = [str(r["k"]) for r in found]
    ratios = [r["highs_s"] / r["ours_s"] for r in found]
    return short(1e6 * ten), f"{min(ratios):.0f}", f"{max(ratios):.0f}", sizes[0], sizes[-1]


def memory() -> tuple[str, str]:
    """Growth over the yardstick, at most; megabytes of the largest Newton matrix."""
    from nashlearn.training.methods.newton import DENSE_LIMIT

    largest = max(r["grown"] / r["allowed"] for r in records("memory"))
    return f"{largest:.2f}", f"{8 * DENSE_LIMIT**2 / 1e6:.0f}"


def starts(names: Iterable[str]) -> list[str]:
    """Milliseconds by which a first fit, or a first run of a command, exceeds the next."""
    return [f"{max(1e3 * records('start')[name]['start'], 0.0):.0f}" for name in names]


def importing() -> tuple[str]:
    """Milliseconds of importing an estimator after scikit-learn."""
    return (f"{1e3 * records('start')['import']['import']:.0f}",)


def kernels() -> tuple[str, ...]:
    """Rows; times over SVC's and one-vs-rest's; how many times as fast predictions are; minutes and GB of MNIST."""
    part = read("benchmarks/results/kernels.json")
    rows = re.search(r"([\d,]+) training rows", part["tables"][0]["note"]).group(1)
    found = [r for r in part["records"] if "fit" in r]
    large = next(r["large"] for r in part["records"] if "large" in r)
    return (
        rows,
        *span(r["fit"]["ours"] / r["fit"]["SVC"] for r in found),
        *span(r["fit"]["ours"] / r["fit"]["one-vs-rest"] for r in found),
        *span(r["predict"]["SVC"] / r["predict"]["ours"] for r in found),
        f"{large['seconds'] / 60:.1f}",
        f"{large['peak'] / 1e9:.1f}",
    )


# Structures.


def matching_games() -> tuple[str, ...]:
    """Sizes, and HiGHS's time over ours: simplex, the faster of its two methods, from the page's own table."""
    table = next(t for t in read("benchmarks/results/matching.json")["tables"] if t["title"] == "The exact game")
    ratios = [min(float(row[2]), float(row[3])) for row in table["rows"]]
    return table["rows"][0][0], table["rows"][-1][0], *span(ratios)


def matching_projections() -> tuple[str, str]:
    """ADMM's and POT's time over ours, at least."""
    found = [r for r in records("matching") if r["what"] == "projection"]
    pot = [r["pot_s"] / r["ours_s"] for r in found if r.get("pot_s")]
    return short(min(r["admm_s"] / r["ours_s"] for r in found)), short(min(pot))


def best_trees() -> tuple[str, str]:
    """Millions of best trees of 20 tokens a minute."""
    return span(r["per_minute"] / 1e6 for r in records("trees")["argmax"] if r["n"] == 20)


def laptop_parser() -> tuple[str, ...]:
    """UAS, LAS, CPU seconds and gap in percent of the game, then UAS, LAS and seconds of the structured SVM."""
    best: dict[str, dict[str, Any]] = {}
    for record in read(f"{_FULL}/laptop_parser.jsonl"):
        method = record["key"][1]
        if method not in best or record["dev"] > best[method]["dev"]:
            best[method] = record
    game, svm = best["game"], best["hinge"]
    scores = [fixed((100 * one["uas"], 100 * one["las"]), 1) for one in (game, svm)]
    seconds = [f"{one['seconds']:.0f}" for one in (game, svm)]
    return *scores[0], seconds[0], f"{100 * game['gap']:.0f}", *scores[1], seconds[1]


def _trainings(data: str, name: str, stop: str) -> dict[str, Any]:
    """The final training of a method on a set; older files have one for each, without the word for what stopped it."""
    return next(
        r for r in records("markov") if r["set"] == data and name in r.get("method", "") and r.get("stop", stop) == stop
    )


def tagger(data: str) -> tuple[str, ...]:
    """Ours after some iterations (score, seconds, iterations, gap in percent), crfsuite by its own rule (the same)."""
    ours, crf = _trainings(data, "(chosen)", "iterations"), _trainings(data, "crfsuite", "own rule")
    gap = short(100 * ours["gap"])
    shown = [(f"{r['score']:.1f}", f"{r['s']:.0f}", str(r["iterations"])) for r in (ours, crf)]
    return *shown[0], gap, *shown[1]


def tagger_iterations() -> tuple[str, ...]:
    """An evaluation of ours over an iteration of crfsuite: CoNLL-2000, letters."""
    ratios = {r["set"]: r["ours"] / r["theirs"] for r in records("markov") if "weights" in r}
    return fixed((ratios["CoNLL-2000"], ratios["OCR letters"]), 2)


def tagger_equal(data: str) -> tuple[str, ...]:
    """Score and seconds of crfsuite after our iterations; score, seconds and iterations of ours at its own ``tol``."""
    crf, ours = _trainings(data, "crfsuite", "iterations"), _trainings(data, "(chosen)", "own rule")
    shown = [(f"{r['score']:.1f}", f"{r['s']:.0f}") for r in (crf, ours)]
    return *shown[0], *shown[1], str(ours["iterations"])


def sudoku() -> tuple[str, ...]:
    """Training puzzles, and test puzzles of 100 with a mistake: all labels, then by share of hidden ones."""
    found = [r for r in read(f"{_FULL}/sudoku.jsonl") if r["key"][1:3] == ["visual", 1000] and "puzzles" in r]
    wrong = {r["key"][3]: f"{100 * r['puzzles']:.0f}" for r in found if r["key"][4] == "nash"}
    return f"{found[0]['key'][2]:,}", wrong[0.0], wrong[0.1], wrong[0.2]


def horses() -> tuple[str, str]:
    """Points of IoU that grids gain."""
    page = (ROOT / _FULL / "README.md").read_text(encoding="utf-8")
    return span((float(gain) for gain in re.findall(r"^\| the same, grid \| [\d.]+ \| \+([\d.]+)", page, re.M)), 1)


def videos() -> tuple[str, ...]:
    """Pairs of videos; on how many both are equal; on how many each leads ten frames apart: as words."""
    page = (ROOT / _FULL / "README.md").read_text(encoding="utf-8")
    told = re.findall(r"better than the SSVM on (\d+) of (\d+) pairs .*? worse on (\d+) .*? or none on (\d+)", page)
    (_, pairs, _, equal), (better, _, worse, _) = told[:2]
    if pairs != equal or better != worse:
        raise ValueError(
            "the README's sentence on videos says that all pairs are equal, and that each leads on as many"
        )
    return _COUNTS[int(pairs)], _COUNTS[int(better)]


def dask() -> tuple[str, ...]:
    """Rows, features, workers, GB each, gap, passes, MB of traffic."""
    found = records("scale_out")
    large = found["large"]
    size = f"{large['rows']:,}", str(large["d"]), _COUNTS[found["workers"]], f"{found['limit_bytes'] / 1e9:.0f}"
    return (
        *size,
        f"{large['gap']:.1e}".replace("e-0", "e-"),
        str(large["passes"]),
        short(sum(large["pass_bytes"]) / 1e6),
    )


# The papers' tables, and the demo.

_BASELINES = {
    "cs": "Crammer–Singer", "logistic": "logistic regression", "svc-rbf": "SVC, one-vs-one",
    "mord-at": "mord, all-threshold", "mord-it": "mord, immediate-threshold", "svorim-rbf": "SVORIM",
    "svorex-rbf": "SVOREX", "redsvm-rbf": "REDSVM", "cs-abstain": "Crammer–Singer", "ova-abstain": "SVM, one-vs-rest",
    "ova-abstain-rbf": "SVC, one-vs-rest",
}  # fmt: skip


def _averages(table: str) -> dict[str, float]:
    """The mean over the sets of a table, for each method."""
    grouped: dict[str, list[float]] = {}
    for cell, found in read(f"{_FULL}/summary.json")[table].items():
        grouped.setdefault(cell.split("/")[1], []).append(found["mean"])
    return {method: sum(means) / len(means) for method, means in grouped.items()}


def paper_row(table: str, method: str, column: str) -> tuple[str, ...]:
    """Sets of the table, the published average, ours, and the best of the baselines that were run here."""
    printed = read("reproduce/papers.json")[{"2": "II", "4": "IV", "5": "V", "6": "VI"}[table[5]]]
    averages = _averages(table)
    accuracy = table.startswith("table2")
    show = "{:.2f}".format if accuracy else "{:.3f}".format
    baselines = {name: value for name, value in averages.items() if name in _BASELINES}
    best = show((max if accuracy else min)(baselines.values()))
    names = ", ".join(_BASELINES[name] for name, value in baselines.items() if show(value) == best)
    published = show(printed["columns"][column]["average"])
    return str(len(printed["sets"])), published, show(averages[method]), f"{best} ({names})"


def splits() -> str:
    """Random splits of each set in the papers' tables."""
    counts = {found["splits"] for table in read(f"{_FULL}/summary.json").values() for found in table.values()}
    return "/".join(map(str, sorted(counts)))


def pyrimidines() -> tuple[str, ...]:
    """Ours, the thesis's; then the span and number of those tunings on other splits that are near it, and of all."""
    printed = read("reproduce/papers.json")["V"]
    published = printed["columns"]["AL^ord-th"]["mean"][printed["sets"].index("pyrimidines")]
    here = read(f"{_FULL}/summary.json")["table5"]["pyrimidines/ord-th-rbf"]["mean"]
    others = [r["loss"] for r in read(f"{_FULL}/sensitivity.jsonl") if r["key"][0] == "table5" and r["key"][3] > 0]
    near = [loss for loss in others if loss < 0.5 * (published + here)]
    return f"{here:.3f}", f"{published:.3f}", *span(near), _COUNTS[len(near)], _COUNTS[len(others)]


def demo_price() -> str:
    """False alarms that a missed tumour costs in the demo, as a word."""
    return _COUNTS[int(read("examples/results/demo.json")["missed"])]


def demo_costs() -> tuple[str, ...]:
    """Mean costs in the demo: ours, the cheapest answer of logistic regression, class weights, plain."""
    found = read("examples/results/demo.json")["costs"]
    names = ("NashClassifier(costs)", "LogisticRegression, cheapest", "LogisticRegression, class_weight")
    return fixed((found[name]["mean"] for name in (*names, "LogisticRegression")), 3)
