"""Words with hidden letters, horses, and scenes: what missing labels cost, and what edges are worth.

*ocr*: handwritten words (train folds 1 to 9, test fold 0) with all labels, and with half of them hidden at random;
*horses*: the pixels of forty images of 64 x 64 with edges between neighbours, beside the same pixels without edges,
labelled by the fast search; *scene*: six labels of an image, every two joined, played exactly on a tree of cliques,
beside the labels without edges. Settings are chosen on a validation part for each.
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


def _pixels(image: np.ndarray) -> np.ndarray:
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


def _grid(image: np.ndarray, joined: bool) -> tuple[np.ndarray, np.ndarray]:
    """Neighbouring pixels, and for each pair a constant and how alike their colours are, across and down."""
    n = image.shape[0]
    number = np.arange(n * n).reshape(n, n)
    across = np.stack([number[:, :-1].ravel(), number[:, 1:].ravel()], axis=1)
    down = np.stack([number[:-1].ravel(), number[1:].ravel()], axis=1)
    edges = np.concatenate([across, down])
    if not joined:
        return edges[:0], np.zeros((0, 3))
    x = image.reshape(-1, 3).astype(np.float64) / 255.0
    distance = ((x[edges[:, 0]] - x[edges[:, 1]]) ** 2).sum(axis=1)
    alike = np.exp(-distance / max(2.0 * distance.mean(), 1e-12))
    return edges, np.column_stack([np.ones(len(edges)), alike, np.repeat([0.0, 1.0], [len(across), len(down)])])


def _horses(kind: str, part: str, quick: bool) -> Parts:
    with np.load(find("images", "weizmann_horses_64.npz")) as content:
        images, masks, split = content["images"], content["masks"].astype(np.int64), content["source_split"].astype(str)
    training = np.flatnonzero(split == "train")
    test = training[-30:] if part == "validation" else np.flatnonzero(split == "test")
    train = training[:40]
    if quick:
        train, test = train[:4], test[:2]

    def examples(rows: np.ndarray) -> tuple[list[Any], list[Any]]:
        return [(_pixels(images[i]), *_grid(images[i], kind == "grid")) for i in rows], [masks[i].ravel() for i in rows]

    return examples(train), examples(test)


def _scene(kind: str, part: str, quick: bool) -> Parts:
    """Images with six yes-or-no labels; each label has weights of its own for the features, each pair a table."""
    with np.load(find("images", "multilabel_scene.npz")) as content:
        data = {name: content[name] for name in content.files}
    X, Y = data["X_train"].astype(np.float64), data["Y_train"].astype(np.int64)
    if part == "validation":
        X, Z, Y, T = X[:-300], X[-300:], Y[:-300], Y[-300:]
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
    "horses": {
        "kinds": ("pixels", "grid"),
        "load": _horses,
        "measure": _overlap,
        "model": NashMarkovNetwork,
        "fixed": {"max_iter": 40},
        "decoding": {"method": "ascent"},
        "grid": [{"smoothing": s, "alpha": a} for s in (0.5,) for a in (1e-2, 1e-3)],
    },
    "scene": {
        "kinds": ("apart", "joined"),
        "load": _scene,
        "measure": _right,
        "model": NashMarkovNetwork,
        "fixed": {"max_iter": 100, "unseen_pairs": True, "fit_intercept": False},
        "grid": [{"smoothing": s, "alpha": a} for s in (0.2, 0.5) for a in (1e-2, 1e-3, 1e-4)],
    },
}


@cache
def _loaded(task: str, kind: str, part: str, quick: bool) -> Parts:
    return TASKS[task]["load"](kind, part, quick)


@cache
def _pilot(part: str, quick: bool) -> NashTagger:
    """What guesses hidden letters, at the settings that validation chooses for it."""
    (X, y), _ = _loaded("ocr", "half", part, quick)
    return trained("nash", NashTagger(alpha=3e-4), X, y)[0]


def work(key: list[Any]) -> dict[str, Any]:
    """A cell: ``[table, task, kind, part, settings, profile]``; ``part`` is "validation" or "test"."""
    _, task, kind, part, settings, profile = key
    (X, y), (Z, t) = _loaded(task, kind, part, profile == "quick")
    one = TASKS[task]
    given = {"guesses": _pilot(part, profile == "quick").predict(X)} if kind.endswith("guesses") else {}
    model, seconds = trained("nash", one["model"](**one["fixed"], **settings), X, y, **given)
    answers = model.predict(Z, **one.get("decoding", {}))
    return {
        "key": key,
        "score": one["measure"](answers, t),
        "right": _right(answers, t),
        "seconds": seconds,
        "gap": model.dual_gap_,
        "exact": model.is_exact_,
    }


def run(table_name: str, profile: Profile, folder: Path, n_jobs: int = 1) -> Store:
    """Complete the store."""
    store = Store(folder / f"{table_name}.jsonl")
    cells = [(task, kind) for task, one in TASKS.items() for kind in one["kinds"]]

    def grid(task: str) -> list[dict[str, float]]:
        return TASKS[task]["grid"] if profile.name == "full" else TASKS[task]["grid"][-1:]

    tuning = [[table_name, t, k, "validation", one, profile.name] for t, k in cells for one in grid(t)]
    carry_out(work, tuning, store, n_jobs, f"{table_name} validation")
    tests = []
    for t, k in cells:
        scores = [store[[table_name, t, k, "validation", one, profile.name]]["score"] for one in grid(t)]
        tests.append([table_name, t, k, "test", grid(t)[int(np.argmax(scores))], profile.name])
    carry_out(work, tests, store, n_jobs, f"{table_name} test")
    return store


def section(folder: Path) -> str:
    """The table as Markdown, or nothing where no cell was run."""
    found = {(r["key"][1], r["key"][2]): r for r in Store(folder / "labelling.jsonl") if r["key"][3] == "test"}
    names = {
        ("ocr", "full"): "letters right, all labels",
        ("ocr", "half"): "letters right, half of the labels hidden",
        ("ocr", "half, guesses"): "letters right, the hidden ones guessed and corrected for",
        ("horses", "pixels"): "overlap with the horse (IoU), pixels alone",
        ("horses", "grid"): "overlap with the horse (IoU), grid",
        ("scene", "apart"): "labels right, labels alone",
        ("scene", "joined"): "labels right, every two joined (exact)",
    }
    rows = []
    for (task, kind), name in names.items():
        if (task, kind) not in found:
            continue
        r = found[task, kind]
        first = found.get((task, TASKS[task]["kinds"][0]))
        change = "" if first is None or first is r else f"{100 * (r['score'] - first['score']):+.2f}"
        settings = ", ".join(f"{name} {value:g}" for name, value in r["key"][4].items())
        rows.append([name, f"{100 * r['score']:.2f}", change, settings, f"{r['gap']:.1e}", f"{r['seconds']:.0f} s"])
    if not rows:
        return ""
    note = (
        "In percent, on the test parts; *change* from the first row of each set. Settings were chosen on validation "
        "parts; guesses are those of a model trained on the letters that are left."
    )
    columns = ["measure", "percent", "change", "chosen", "gap", "training"]
    title = "labelling: hidden labels, grids and joined labels"
    return report.show(report.table(title, note, columns, rows)).replace("### ", "## ", 1)
