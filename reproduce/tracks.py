"""Tracks on held-out videos: ours beside the Hungarian method on overlaps, by MOTA and IDF1.

Two tasks. *boxes*: the annotated boxes, with all features, linked from each frame to the next. *detections*: those of a
detector, with geometry and motion alone; as it misses many objects, tracks may go unseen for a few frames. Overlaps are
matched from frame to frame (``overlap``), and with the same memory (``overlap, memory``). Each video is held out in
turn; the others of its collection, TUD or ETH, are trained on, and the one parameter of each method, alpha or the least
overlap, is the best by their MOTA + IDF1.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nashlearn import NashMatcher
from nashlearn.datasets import Boxes, load_tracking, tracking_names
from nashlearn.tracking import adopt_ids, by_matcher, by_overlap, describe, follow, score_tracks, track_examples
from reproduce.protocol import Profile
from reproduce.run import carry_out
from reproduce.store import Store

__all__ = ["METHODS", "TASKS", "evaluate", "run"]

TASKS = {"boxes": 0, "detections": 5}  # frames for which a track may go unseen
ALPHAS = (1e-1, 1e-2, 1e-3)
LEAST = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)


class Scene(NamedTuple):
    """Boxes to be linked, what they look like, the annotation to score by, and boxes with ids to learn from."""

    boxes: Boxes
    looks: np.ndarray | None
    truth: Boxes
    known: Boxes


@functools.lru_cache(maxsize=10)
def _scene(name: str, task: str) -> Scene:
    video = load_tracking(name)
    if task == "boxes":
        return Scene(video.truth, describe(video.thumbs, video.hist), video.truth, video.truth)
    known = adopt_ids(video.detections, video.truth)
    # Annotated boxes of confidence 0 are to be ignored; detections of no object teach nothing about its tracks.
    return Scene(video.detections, None, video.truth[video.truth.confidence > 0], known[known.id >= 0])


Linker = Callable[[Scene], Boxes]


def _nash(scenes: list[Scene], memory: int) -> dict[float, Linker]:
    X, y = [], []
    for scene in scenes:
        examples, answers = track_examples(scene.known, memory=memory, looks=scene.looks)
        X, y = X + examples, y + answers
    matchers = {alpha: NashMatcher(alpha=alpha, tol=1e-2).fit(X, y) for alpha in ALPHAS}
    return {
        alpha: lambda other, m=matcher: follow(other.boxes, by_matcher(m), memory=memory, looks=other.looks)
        for alpha, matcher in matchers.items()
    }


def _overlap(memory: int) -> dict[float, Linker]:
    def linker(least: float) -> Linker:
        def link(other: Scene) -> Boxes:
            box = other.boxes.box
            return follow(other.boxes, lambda m: by_overlap(box[m.tracks], box[m.boxes], least), memory=memory)

        return link

    return {least: linker(least) for least in LEAST}


METHODS: dict[str, Callable[[list[Scene], int], dict[float, Linker]]] = {
    "nash": _nash,
    "overlap": lambda scenes, memory: _overlap(0),
    "overlap, memory": lambda scenes, memory: _overlap(memory),
}


def evaluate(key: list[Any]) -> dict[str, Any]:
    """Scores of one method on a video, with its parameter chosen on the others of the collection."""
    _, test, method, task = key
    begin = time.perf_counter()
    others = [name for name in tracking_names() if name != test and name.split("-")[0] == test.split("-")[0]]
    scenes, held = [_scene(name, task) for name in others], _scene(test, task)
    linkers = METHODS[method](scenes, TASKS[task])
    found = {
        value: sum(_sum(score_tracks(scene.truth, link(scene))) for scene in scenes) for value, link in linkers.items()
    }
    best = max(found, key=found.__getitem__)
    scores = score_tracks(held.truth, linkers[best](held))
    return {"key": key, "parameter": best, **scores, "seconds": time.perf_counter() - begin}


def _sum(scores: dict[str, float]) -> float:
    return scores["mota"] + scores["idf1"]


def run(table: str, profile: Profile, folder: Path, n_jobs: int = 1) -> Store:
    """Complete the store; the reduced profile has the smallest video only."""
    store = Store(folder / f"{table}.jsonl")
    videos = tracking_names()[: 1 if profile.thin > 1 else None]
    keys = [[table, name, method, task] for name in videos for task in TASKS for method in METHODS]
    carry_out(evaluate, keys, store, n_jobs, table)
    return store
