"""Boxes in videos, in the format of the MOT challenge."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer

import nashlearn
from nashlearn import report
from nashlearn.cli import options as o
from nashlearn.cli.task import Examples, Predictions, Task
from nashlearn.cli.tune import Fold, cuts
from nashlearn.cli.videos import Video, find_videos, read_boxes, video_files
from nashlearn.datasets.mot import mot_text

__all__ = ["Tracks"]

_DATA = "A folder of the MOT challenge, one of several, or one of NAME.gt.txt and NAME.det.txt."


@dataclass(kw_only=True)
class Tracks(Task):
    """Videos; examples are steps from frame to frame. Whole videos are held out and judged."""

    name = "track"
    group = "Link the boxes of objects in videos into tracks: MOT files in and out."
    saved_as = "nashlearn.estimators.matcher.NashMatcher"
    schema_types: ClassVar = {"memory": int, "on": str}
    defaults: ClassVar = {"alpha": 1e-2, "tol": 1e-2}
    grid: ClassVar = {"alpha": (1e-1, 1e-2, 1e-3)}
    counted = "frames"

    video: Annotated[list[str] | None, typer.Option("--video", "-v", help="Only this video; may be repeated.")] = None
    on: Annotated[str, typer.Option("--on", help="detections or truth: the boxes that are linked.")] = "detections"
    memory: Annotated[int, typer.Option(min=0, help="Frames for which a track may go unseen.")] = 5
    trained_on: list[str] = field(default_factory=list)

    @o.Command(
        "data out | video on memory alpha tune folds report test learning_curve tol max_iter max_time "
        "checkpoint jobs seed",
        data=_DATA,
        test="A video of the folder, held out for the report.",
    )
    def train(self) -> None:
        """Learn to link boxes from frame to frame, from videos with annotated tracks.

        nashlearn track train MOT15/train --out walk.model --test TUD-Campus --report walk.html
        """

    @o.Command(
        "model data | out video",
        data="Boxes in MOT format, a file or a folder with one video; - for input.",
        out="MOT format, also .gz; else standard output.",
    )
    def predict(self) -> None:
        """Link boxes into tracks: the same boxes with ids."""

    @o.Command("model data | video report", data=_DATA, report="Write an HTML report on the (first) video.")
    def evaluate(self) -> None:
        """Judge a tracker on annotated videos: wrong links, and MOTA and IDF1 of whole tracks."""

    def inputs(self) -> Iterable[str | Path | None]:
        return video_files(self.data)

    def learn(self) -> Examples:
        videos = find_videos(self.data, self.video or [])
        if self.test is None and self.report is not None:
            if len(videos) < 2:
                raise ValueError("--report needs a video that is not trained on: name it with --test.")
            self.test = videos[0].name
            self.talk.note(f"the video {self.test} is held out for the report; the model is trained on the others.")
        if self.test is not None:
            find_videos(self.data, [self.test])  # refused where there is none
        videos = [one for one in videos if one.name != self.test]
        if not videos:
            raise ValueError("No video is left to train on.")
        self.trained_on = [one.name for one in videos]
        X, y = (list(chain(*parts)) for parts in zip(*map(self._examples, videos), strict=True))
        return X, y

    def known(self, data: str) -> list[Video]:
        return find_videos(data, self.video or [])

    def held(self) -> list[Video]:
        return find_videos(self.data, [str(self.test)])

    def _boxes(self, video: Video, learn: bool) -> tuple[Any, Any]:
        """Boxes of a video, with the ids to learn from where asked for, and the annotation, or None."""
        from nashlearn.tracking import adopt_ids

        files = {"detections": video.detections, "truth": video.truth}
        if self.on not in files:
            raise ValueError(f"--on must be detections or truth; got {self.on!r}.")
        path = files[self.on]
        if path is None or (learn and video.truth is None):
            kind = "detections" if path is None and self.on == "detections" else "annotated boxes"
            raise ValueError(
                f"The video {video.name} has no file of {kind}. See --on, and --help for the names of files."
            )
        truth: Any = None if video.truth is None else read_boxes(video.truth)
        boxes: Any = truth if self.on == "truth" else read_boxes(path)
        if not learn or self.on == "truth":
            return boxes, truth
        known = adopt_ids(boxes, truth)
        return known[known.id >= 0], truth

    def _examples(self, video: Video) -> Examples:
        from nashlearn.tracking import track_examples

        return track_examples(self._boxes(video, learn=True)[0], memory=self.memory)

    def build(self, examples: Examples) -> Any:
        return nashlearn.NashMatcher(**self.parameters())

    def about(self, examples: Examples) -> tuple[str, dict[str, Any]]:
        frames, boxes, videos = len(examples[0]), sum(map(len, examples[1])), self.trained_on
        words = f"{len(videos)} videos, {frames:,} frames, {boxes:,} boxes to continue"
        return words, {"videos": videos, "frames": frames, "on": self.on}

    def parts(self, y: Any) -> list[Fold]:
        return cuts(len(y), self.folds, None, "frames")  # not shuffled: frames that follow each other are alike

    def _linked(self, model: Any, boxes: Any) -> Any:
        from nashlearn.tracking import by_matcher, follow

        return follow(boxes, by_matcher(model), memory=self.memory)

    def _track_scores(self, model: Any, video: Video) -> dict[str, float] | None:
        """Scores of whole tracks; None where motmetrics is not installed."""
        from nashlearn.tracking import score_tracks

        boxes, truth = self._boxes(video, learn=False)
        try:
            return score_tracks(truth[truth.confidence > 0], self._linked(model, boxes))
        except ModuleNotFoundError:
            return None

    def judge(self, model: Any, held: list[Video]) -> dict[str, Any]:
        """Wrong links, given the tracks so far, and the scores of whole tracks, of the first video."""
        X, y = self._examples(held[0])
        found: dict[str, Any] = {"video": held[0].name, "frames": len(X), "wrong_links": model.task_loss(X, y)}
        return {**found, **(self._track_scores(model, held[0]) or {"mota": None, "idf1": None})}

    def evaluated(self, model: Any, held: list[Video]) -> dict[str, Any]:
        return {"videos": [self.judge(model, [one]) for one in held]}

    def judged(self, held: list[Video]) -> Examples:
        return self._examples(held[0])

    def report_data(self, model: Any, held: list[Video], learnt: Examples | None, **more: Any) -> dict[str, Any]:
        from nashlearn.tracking import by_overlap

        video = held[0]
        known, _ = self._boxes(video, learn=True)
        scores = self._track_scores(model, video)
        return report.tracking_report_data(
            model,
            known,
            memory=self.memory,
            scores=None if scores is None else {"this model": scores},
            baselines={"largest overlap": lambda m: by_overlap(known.box[m.tracks], known.box[m.boxes], 0.3)},
            title=f"{video.name}: tracking",
            facts={"video": video.name, "boxes": self.on},
            **more,
        )

    def predictions(self, model: Any) -> Predictions:
        if self.data == "-" or (Path(self.data).is_file() and not self.video):
            boxes = read_boxes(self.data)
        else:
            videos = self.known(self.data)
            if len(videos) > 1:
                raise ValueError(f"{self.data} holds {len(videos)} videos; choose one with --video.")
            boxes, _ = self._boxes(videos[0], learn=False)
        tracks = self._linked(model, boxes)
        counts = {"boxes": len(tracks), "tracks": int(tracks.id.max(initial=0))}
        data = {**counts, "frame": tracks.frame.tolist(), "id": tracks.id.tolist(), "box": tracks.box.tolist()}
        return Predictions(data, lambda: mot_text(tracks), counts)
