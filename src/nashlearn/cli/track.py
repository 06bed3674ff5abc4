"""Commands for boxes in videos, in the format of the MOT challenge."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Annotated, Any

import typer

from nashlearn.cli import options as o
from nashlearn.cli.outputs import check_writable, write_whole
from nashlearn.cli.saved import check_saving, finish, keeping, load_task, save_task, training_summary
from nashlearn.cli.talk import Talk
from nashlearn.cli.tune import candidates, check_folds, tuned
from nashlearn.cli.videos import Video, find_videos, read_boxes, video_files

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help="Link the boxes of objects in videos into tracks: MOT files in and out.")

Videos = Annotated[
    str, typer.Argument(help="A folder of the MOT challenge, one of several, or one of NAME.gt.txt and NAME.det.txt.")
]
Names = Annotated[list[str] | None, typer.Option("--video", "-v", help="Only this video; may be repeated.")]
On = Annotated[str, typer.Option("--on", help="detections or truth: the boxes that are linked.")]
_ALPHA, _TOL, _MEMORY = 1e-2, 1e-2, 5
_GRID = {"alpha": (1e-1, 1e-2, 1e-3)}


def _boxes(video: Video, on: str, learn: bool) -> tuple[Any, Any]:
    """Boxes of a video, with the ids to learn from where asked for, and the annotation; None where there is none."""
    from nashlearn.tracking import adopt_ids

    if on not in ("detections", "truth"):
        raise ValueError(f"--on must be detections or truth; got {on!r}.")
    path = video.detections if on == "detections" else video.truth
    if path is None or (learn and video.truth is None):
        kind = "detections" if path is None and on == "detections" else "annotated boxes"
        raise ValueError(f"The video {video.name} has no file of {kind}. See --on, and --help for the names of files.")
    truth = None if video.truth is None else read_boxes(video.truth)
    boxes: Any = read_boxes(path) if on == "detections" else truth
    if not learn or on == "truth" or truth is None:
        return boxes, truth
    known = adopt_ids(boxes, truth)
    return known[known.id >= 0], truth


def _examples(videos: list[Video], on: str, memory: int) -> tuple[list[Any], list[Any]]:
    from nashlearn.tracking import track_examples

    X: list[Any] = []
    y: list[Any] = []
    for video in videos:
        examples, answers = track_examples(_boxes(video, on, learn=True)[0], memory=memory)
        X, y = X + examples, y + answers
    return X, y


@app.command()
def train(
    data: Videos,
    out: o.Out,
    video: Names = None,
    on: On = "detections",
    memory: Annotated[int, typer.Option(min=0, help="Frames for which a track may go unseen.")] = _MEMORY,
    alpha: o.Alpha = None,
    do_tune: o.Tune = False,
    folds: o.Folds = 3,
    report: o.Report = None,
    test: Annotated[str | None, typer.Option("--test", help="A video of the folder, held out for the report.")] = None,
    tol: o.Tol = None,
    max_iter: o.MaxIter = None,
    max_time: o.MaxTime = None,
    checkpoint: o.Checkpoint = None,
    jobs: o.Jobs = None,
    seed: o.Seed = 0,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Learn to link boxes from frame to frame, from videos with annotated tracks.

    nashlearn track train MOT15/train --out walk.model --test TUD-Campus --report walk.html
    """
    talk = Talk(json, quiet)
    check_writable(out, report, checkpoint, inputs=video_files(data))
    check_saving()
    from nashlearn import NashMatcher

    videos = find_videos(data, video or [])
    held = None
    if test is None and report is not None:
        if len(videos) < 2:
            raise ValueError("--report needs a video that is not trained on: name it with --test.")
        test = videos[0].name
        talk.note(f"the video {test} is held out for the report; the model is trained on the others.")
    if test is not None:
        held = find_videos(data, [test])[0]
        videos = [one for one in videos if one.name != test]
    if not videos:
        raise ValueError("No video is left to train on.")
    X, y = _examples(videos, on, memory)
    talk.note(f"{data}: {len(videos)} videos, {len(X):,} frames, {sum(map(len, y)):,} boxes to continue")
    given = o.given(alpha=alpha, tol=tol, max_iter=max_iter, max_time=max_time, n_jobs=jobs, checkpoint=checkpoint)
    matcher = NashMatcher(**{"alpha": _ALPHA, "tol": _TOL, **given})
    found: dict[str, Any] = {"model": str(out), "videos": [one.name for one in videos], "frames": len(X), "on": on}
    if do_tune:
        found |= _tune(talk, matcher, X, y, folds, alpha)
    with talk.training("training", matcher.tol, matcher.max_iter) as (callback, trained):
        matcher.set_params(callback=callback).fit(X, y)
    with keeping(talk, out):
        found |= {"alpha": matcher.alpha, **training_summary(matcher, trained)}
        save_task("track", matcher, out, {"memory": memory, "on": on}, {"data": data, **found})
    if held is not None:
        found["held_out"] = _scores(matcher, held, on, memory)
    if report is not None and held is not None:
        _report(report, matcher, held, on, memory)
        found["report"] = str(report)
    finish(talk, found, trained)


def _tune(talk: Talk, matcher: Any, X: list[Any], y: list[Any], folds: int, alpha: float | None) -> dict[str, Any]:
    from sklearn.base import clone
    from sklearn.model_selection import KFold

    check_folds(len(X), folds, "frames")
    parts = list(KFold(folds).split(X))  # without shuffling: frames that follow each other are alike

    def loss(choice: dict[str, Any], fold: Any) -> float:
        one = clone(matcher).set_params(max_time=None, checkpoint=None, **choice)
        one.fit([X[i] for i in fold[0]], [y[i] for i in fold[0]])
        return one.task_loss([X[i] for i in fold[1]], [y[i] for i in fold[1]])

    grid = _GRID if alpha is None else {"alpha": (alpha,)}
    best = tuned(talk, candidates(grid), parts, loss)
    matcher.set_params(alpha=best["alpha"])
    return best


def _linked(matcher: Any, boxes: Any, memory: int) -> Any:
    from nashlearn.tracking import by_matcher, follow

    return follow(boxes, by_matcher(matcher), memory=memory)


def _scores(matcher: Any, video: Video, on: str, memory: int) -> dict[str, Any]:
    """Wrong links, given the tracks so far, and the scores of whole tracks where motmetrics is installed."""
    from nashlearn.tracking import score_tracks

    X, y = _examples([video], on, memory)
    boxes, truth = _boxes(video, on, learn=False)
    found: dict[str, Any] = {"video": video.name, "frames": len(X), "wrong_links": matcher.task_loss(X, y)}
    tracks = _linked(matcher, boxes, memory)
    try:
        found |= score_tracks(truth[truth.confidence > 0], tracks)
    except ModuleNotFoundError:
        found["mota"] = found["idf1"] = None
    return found


def _report(path: Path, matcher: Any, video: Video, on: str, memory: int) -> None:
    from nashlearn import report
    from nashlearn.tracking import by_overlap, score_tracks

    known, truth = _boxes(video, on, learn=True)
    boxes, _ = _boxes(video, on, learn=False)
    rules = {"largest overlap": lambda m: by_overlap(known.box[m.tracks], known.box[m.boxes], 0.3)}
    scores = None
    with contextlib.suppress(ModuleNotFoundError):
        scores = {"this model": score_tracks(truth[truth.confidence > 0], _linked(matcher, boxes, memory))}
    title = f"{video.name}: tracking"
    made = report.tracking_report_data(
        matcher,
        known,
        memory=memory,
        scores=scores,
        baselines=rules,
        title=title,
        facts={"video": video.name, "boxes": on},
    )
    report.write_report(path.resolve(), made)


@app.command()
def predict(
    model: o.Model,
    data: Annotated[str, typer.Argument(help="Boxes in MOT format, a file or a folder with one video; - for input.")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="MOT format, also .gz; else standard output.")] = None,
    video: Names = None,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Link boxes into tracks: the same boxes with ids."""
    talk = Talk(json, quiet)
    check_writable(out, inputs=[model, *video_files(data)])
    from nashlearn.datasets import write_mot

    matcher, schema = load_task("track", model)
    if data == "-" or (Path(data).is_file() and not video):
        boxes = read_boxes(data)
    else:
        found = find_videos(data, video or [])
        if len(found) > 1:
            raise ValueError(f"{data} holds {len(found)} videos; choose one with --video.")
        boxes, _ = _boxes(found[0], schema["on"], learn=False)
    tracks = _linked(matcher, boxes, schema["memory"])
    summary = {"boxes": len(tracks), "tracks": int(tracks.id.max(initial=0))}
    if out is not None:
        write_whole(out, lambda path: write_mot(path, tracks))
        talk.result({**summary, "out": str(out)})
    elif json:
        talk.result({**summary, "frame": tracks.frame.tolist(), "id": tracks.id.tolist(), "box": tracks.box.tolist()})
    else:
        print(_text(tracks), end="")


def _text(tracks: Any) -> str:
    """What write_mot writes."""
    import tempfile

    from nashlearn.datasets import write_mot

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tracks.txt"
        write_mot(path, tracks)
        return path.read_text()


@app.command()
def evaluate(
    model: o.Model,
    data: Videos,
    video: Names = None,
    report: Annotated[Path | None, typer.Option("--report", help="Write an HTML report on the (first) video.")] = None,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Judge a tracker on annotated videos: wrong links, and MOTA and IDF1 of whole tracks."""
    talk = Talk(json, quiet)
    check_writable(report, inputs=[model, *video_files(data)])
    matcher, schema = load_task("track", model)
    videos = find_videos(data, video or [])
    found: dict[str, Any] = {
        "model": str(model),
        "videos": [_scores(matcher, one, schema["on"], schema["memory"]) for one in videos],
    }
    if report is not None:
        _report(report, matcher, videos[0], schema["on"], schema["memory"])
        found["report"] = str(report)
    talk.result(found)
