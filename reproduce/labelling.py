"""Words with hidden letters, horses, and scenes: what missing labels cost, and what edges are worth.

*ocr*: handwritten words (train folds 1 to 9, test fold 0) with all labels, and with half of them hidden at random;
*horses*: the pixels of thirty images of 64 x 64 with edges between neighbours, beside the same pixels without edges,
with each pixel's own colours as features or with those around it and its place besides; *scene*: six labels of an
image, every two joined, played exactly on a tree of cliques, beside the labels without edges. Settings are chosen on a
validation part for each, by the same grid with edges and without (and a smaller alpha without). A horse is a quarter of
an image, and overlap is not the loss of training: how much its score is raised before the best labeling is taken is
chosen in the same way.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy import ndimage, sparse

from benchmarks import report
from nashlearn import NashMarkovNetwork, NashTagger, datasets
from nashlearn.datasets.home import find
from nashlearn.games import markov
from reproduce.networks import flat, trained
from reproduce.protocol import Profile
from reproduce.run import carry_out
from reproduce.store import Store

__all__ = ["TASKS", "run", "section", "work"]

Parts = tuple[tuple[list[Any], list[Any]], tuple[list[Any], list[Any]]]


def _ocr(kind: str, part: str, quick: bool) -> Parts:
    """Words with all letters labelled, or with half."""
    data = datasets.load_ocr_letters()
    hidden = np.random.default_rng(50).random(sum(map(len, data.target))) < 0.5
    cuts = np.cumsum([len(y) for y in data.target])[:-1]
    partly = [np.where(h, -1, y) for h, y in zip(np.split(hidden, cuts), data.target, strict=True)]
    test = data.folds == (9 if part == "validation" else 0)
    train = (data.folds > 0) & ~test
    if quick:
        train &= data.folds == 1
    rows, others = np.flatnonzero(train), np.flatnonzero(test)
    labels = data.target if kind == "full" else partly
    return (
        ([data.data[i] for i in rows], [labels[i] for i in rows]),
        ([data.data[i] for i in others], [data.target[i] for i in others]),
    )


def _colours(image: np.ndarray) -> np.ndarray:
    """Features of pixels by themselves: colours, their products, and how they differ from the image's mean."""
    x = image.astype(np.float64) / 255.0 - 0.5
    products = [x[..., a] * x[..., b] for a in range(3) for b in range(a, 3)]
    whole = x - x.mean(axis=(0, 1))
    return np.concatenate([x, np.stack(products, axis=-1), whole, whole**2], axis=-1).reshape(-1, 15)


def _surroundings(image: np.ndarray) -> np.ndarray:
    """Features of pixels: colours, their means and deviations around at three widths, and where they are."""
    x = image.astype(np.float64) / 255.0 - 0.5
    layers = [x]
    for width in (3, 9, 21):
        mean = np.stack([ndimage.uniform_filter(x[..., c], width, mode="nearest") for c in range(3)], axis=-1)
        square = np.stack([ndimage.uniform_filter(x[..., c] ** 2, width, mode="nearest") for c in range(3)], axis=-1)
        layers += [mean, np.sqrt(np.maximum(square - mean**2, 0.0))]
    whole = x - x.mean(axis=(0, 1))
    row, column = np.meshgrid(*(np.linspace(-1, 1, n) for n in x.shape[:2]), indexing="ij")
    places = [row, column, row * column, row**2, column**2, np.exp(-2 * (row**2 + column**2))]
    return np.concatenate([*layers, whole, whole**2, np.stack(places, axis=-1)], axis=-1).reshape(-1, 33)


def _grid(image: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Neighbouring pixels; for each pair a constant, how alike its colours are at three scales and its means of 3 x 3.

    The first half of the features counts pairs side by side, the other those above one another.
    """
    n = image.shape[0]
    number = np.arange(n * n).reshape(n, n)
    across = np.stack([number[:, :-1].ravel(), number[:, 1:].ravel()], axis=1)
    down = np.stack([number[:-1].ravel(), number[1:].ravel()], axis=1)
    edges = np.concatenate([across, down])
    x = image.astype(np.float64) / 255.0
    near, around = (_distances(one, edges) for one in (x, ndimage.uniform_filter(x, (3, 3, 1), mode="nearest")))
    alike = np.column_stack([np.ones(len(edges)), *(np.exp(-near / c) for c in (0.25, 1.0, 4.0)), np.exp(-around)])
    beside = np.repeat([1.0, 0.0], [len(across), len(down)])[:, None]
    return edges, np.hstack([alike * beside, alike * (1.0 - beside)])


def _distances(image: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Squared distances of the colours of pairs, over their mean."""
    x = image.reshape(-1, 3)
    distance = ((x[edges[:, 0]] - x[edges[:, 1]]) ** 2).sum(axis=1)
    return distance / max(distance.mean(), 1e-12)


def _horses(kind: str, part: str, quick: bool) -> Parts:
    with np.load(find("images", "weizmann_horses_64.npz")) as content:
        images, masks, split = content["images"], content["masks"].astype(np.int64), content["source_split"].astype(str)
    training = np.flatnonzero(split == "train")
    test = training[-30:] if part == "validation" else np.flatnonzero(split == "test")
    train = training[:30]
    if quick:
        train, test = train[:4], test[:2]
    features = _surroundings if "surroundings" in kind else _colours

    def examples(rows: np.ndarray) -> tuple[list[Any], list[Any]]:
        graphs = [_grid(images[i]) if "grid" in kind else (np.zeros((0, 2), np.int64), np.zeros((0, 10))) for i in rows]
        return [(features(images[i]), *g) for i, g in zip(rows, graphs, strict=True)], [masks[i].ravel() for i in rows]

    return examples(train), examples(test)


def _raised(model: Any, X: list[Any], lift: float) -> list[np.ndarray]:
    """The best labelings once the second class's score is raised everywhere by ``lift``, in units of the smoothing."""
    more = lift * model.smoothing_ / (1.0 + model.smoothing_) * np.array([0.0, 1.0])  # scores are not in costs
    return [
        markov(edges, np.full(len(f), 2), exact=False).maximise((f + more, T), method="ascent").labels
        for (f, T), (_, edges, _) in zip(model.decision_function(X), X, strict=True)
    ]


def _scene(kind: str, part: str, quick: bool) -> Parts:
    """Images with six yes-or-no labels; each label has weights of its own for the features, each pair a table."""
    with np.load(find("images", "multilabel_scene.npz")) as content:
        data = {name: content[name] for name in content.files}
    X, Y = data["X_train"].astype(np.float64), data["Y_train"].astype(np.int64)
    if part == "validation":
        order = np.random.default_rng(6).permutation(len(X))  # they come sorted by label
        X, Z, Y, T = X[order[:-300]], X[order[-300:]], Y[order[:-300]], Y[order[-300:]]
    else:
        Z, T = data["X_test"].astype(np.float64), data["Y_test"].astype(np.int64)
    mean, sd = X.mean(axis=0), X.std(axis=0) + 1e-9
    labels = Y.shape[1]
    edges = np.array([(u, v) for u in range(labels) for v in range(u + 1, labels)]) if kind == "joined" else []

    def examples(A: np.ndarray, B: np.ndarray) -> tuple[list[Any], list[Any]]:
        rows = range(min(len(A), 60) if quick else len(A))
        eye = sparse.identity(labels, format="csr")
        own = [sparse.csr_matrix(np.append((A[i] - mean) / sd / np.sqrt(A.shape[1]), 1.0)) for i in rows]
        return [(sparse.kron(eye, x, format="csr"), edges, np.eye(len(edges))) for x in own], [B[i] for i in rows]

    return examples(X, Y), examples(Z, T)


def _right(answers: list[np.ndarray], truth: list[np.ndarray]) -> float:
    return float((flat(answers) == flat(truth)).mean())


def _overlap(answers: list[np.ndarray], truth: list[np.ndarray]) -> float:
    """Intersection over union of the horse, mean over images."""
    return float(np.mean([(a & b).sum() / max((a | b).sum(), 1) for a, b in zip(answers, truth, strict=True)]))


TASKS: dict[str, dict[str, Any]] = {
    "ocr": {
        "kinds": ("full", "half", "half, guesses"),
        "load": _ocr,
        "measure": _right,
        "model": NashTagger,
        "fixed": {"max_iter": 100},
        "grid": [{"smoothing": s, "alpha": a} for s in (0.5, 1.0) for a in (1e-3, 3e-4, 1e-4, 3e-5)],
    },
    "scene": {
        "kinds": ("apart", "joined"),
        "load": _scene,
        "measure": _right,
        "model": NashMarkovNetwork,
        "fixed": {"max_iter": 100, "unseen_pairs": True, "fit_intercept": False},
        "grid": [{"smoothing": s, "alpha": a} for s in (0.2, 0.5) for a in (1e-3, 1e-4, 1e-5)],
    },
    "horses": {
        "kinds": ("pixels", "grid", "pixels, surroundings", "grid, surroundings"),
        "load": _horses,
        "measure": _overlap,
        "model": NashMarkovNetwork,
        "fixed": {"max_iter": 120},
        "grid": [
            {"smoothing": s, "alpha": a, "lift": lift}
            for s, a in ((2.0, 1e-4), (2.0, 1e-5), (2.0, 1e-6))
            for lift in (0.3, 0.6, 0.9, 1.2, 1.5)
        ],
    },
}


def _settings(task: str, kind: str) -> list[dict[str, float]]:
    """What validation chooses from; grids of pixels leave out the least alpha, which takes them too many iterations."""
    return [s for s in TASKS[task]["grid"] if not kind.startswith("grid") or s["alpha"] > 1e-6]


@cache
def _loaded(task: str, kind: str, part: str, quick: bool) -> Parts:
    return TASKS[task]["load"](kind, part, quick)


@cache
def _pilot(part: str, quick: bool) -> NashTagger:
    """What guesses hidden letters, at the settings that validation chooses for it."""
    (X, y), _ = _loaded("ocr", "half", part, quick)
    return trained("nash", NashTagger(alpha=3e-4, smoothing=0.5), X, y)[0]


@cache
def _fitted(task: str, kind: str, part: str, quick: bool, settings: tuple[tuple[str, float], ...]) -> tuple[Any, float]:
    """A trained model and its CPU seconds."""
    (X, y), _ = _loaded(task, kind, part, quick)
    given = {"guesses": _pilot(part, quick).predict(X)} if kind.endswith("guesses") else {}
    return trained("nash", TASKS[task]["model"](**TASKS[task]["fixed"], **dict(settings)), X, y, **given)


def work(key: list[Any]) -> dict[str, Any]:
    """A cell: ``[table, task, kind, part, settings, profile]``; ``part`` is "validation" or "test"."""
    _, task, kind, part, settings, profile = key
    _, (Z, t) = _loaded(task, kind, part, profile == "quick")
    own = tuple((name, value) for name, value in settings.items() if name != "lift")
    # Horses are trained on the same images whichever they are judged by.
    model, seconds = _fitted(task, kind, "validation" if task == "horses" else part, profile == "quick", own)
    answers = _raised(model, Z, settings["lift"]) if "lift" in settings else model.predict(Z)
    return {
        "key": key,
        "score": TASKS[task]["measure"](answers, t),
        "right": _right(answers, t),
        "seconds": seconds,
        "gap": model.dual_gap_,
        "exact": model.is_exact_,
    }


def run(table_name: str, profile: Profile, folder: Path, n_jobs: int = 1) -> Store:
    """Complete the store."""
    store = Store(folder / f"{table_name}.jsonl")
    for task, one in TASKS.items():
        grids = {kind: _settings(task, kind) for kind in one["kinds"]}
        if profile.name != "full":
            grids = {kind: grid[-1:] for kind, grid in grids.items()}
        tuning = [[table_name, task, kind, "validation", s, profile.name] for kind, grid in grids.items() for s in grid]
        carry_out(work, tuning, store, n_jobs, f"{table_name} validation")
        tests = []
        for kind, grid in grids.items():
            scores = [store[[table_name, task, kind, "validation", s, profile.name]]["score"] for s in grid]
            tests.append([table_name, task, kind, "test", grid[int(np.argmax(scores))], profile.name])
        carry_out(work, tests, store, n_jobs, f"{table_name} test")
    return store


def section(folder: Path) -> str:
    """The table as Markdown, or nothing where no cell was run."""
    found = {(r["key"][1], r["key"][2]): r for r in Store(folder / "labelling.jsonl") if r["key"][3] == "test"}
    names = {
        ("ocr", "full"): "letters right, all labels",
        ("ocr", "half"): "letters right, half of the labels hidden",
        ("ocr", "half, guesses"): "letters right, the hidden ones guessed and corrected for",
        ("horses", "pixels"): "overlap with the horse (IoU), pixels by their colours",
        ("horses", "grid"): "the same, grid",
        ("horses", "pixels, surroundings"): "overlap with the horse (IoU), pixels by their surroundings and place",
        ("horses", "grid, surroundings"): "the same, grid",
        ("scene", "apart"): "labels right, labels alone",
        ("scene", "joined"): "labels right, every two joined (exact)",
    }
    rows = []
    for (task, kind), name in names.items():
        if (task, kind) not in found:
            continue
        r = found[task, kind]
        first = found.get((task, "pixels, surroundings" if "surroundings" in kind else TASKS[task]["kinds"][0]))
        change = "" if first is None or first is r else f"{100 * (r['score'] - first['score']):+.2f}"
        settings = ", ".join(f"{name} {value:g}" for name, value in r["key"][4].items())
        rows.append([name, f"{100 * r['score']:.2f}", change, settings, f"{r['gap']:.1e}", f"{r['seconds']:.0f} s"])
    if not rows:
        return ""
    note = (
        "In percent, on the test parts; *change* from the first row of each set, or of its features. Settings were "
        "chosen on validation parts; guesses are those of a model trained on the letters that are left. *lift*: by how "
        "much the horse's score is raised before the best labeling is taken, in units of the smoothing, chosen for "
        "pixels alone as for grids. Grids are played over the local polytope, which bounds their loss from above."
    )
    columns = ["measure", "percent", "change", "chosen", "gap", "training"]
    title = "labelling: hidden labels, grids and joined labels"
    return report.show(report.table(title, note, columns, rows)).replace("### ", "## ", 1)
