"""Videos in folders as the MOT challenge lays them out, and as single files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

from nashlearn.cli.errors import read_text
from nashlearn.cli.labels import shown
from nashlearn.datasets.mot import parse_mot

__all__ = ["Video", "find_videos", "read_boxes", "video_files"]

_ENDINGS = (".txt", ".txt.gz")


class Video(NamedTuple):
    """A video's annotated boxes and detections, as far as there are files of them."""

    name: str
    truth: Path | None
    detections: Path | None


def find_videos(data: str, wanted: list[str]) -> list[Video]:
    """Videos of a folder, or the one that a file belongs to; of these the ``wanted`` ones.

    A folder is a video (``gt/gt.txt``, ``det/det.txt``), or holds such folders, or files ``NAME.gt.txt`` and
    ``NAME.det.txt``; all may be gzipped.
    """
    path = Path(data)
    if not path.exists():
        raise ValueError(f"There is no file or folder {data}.")
    videos = _all_videos(path)
    if not videos:
        raise ValueError(f"{data} holds no videos: neither gt/gt.txt nor NAME.gt.txt, gzipped or not.")
    names = [video.name for video in videos]
    missing = [name for name in wanted if name not in names]
    if missing:
        raise ValueError(f"{data} has no video {shown(missing)}; it has {shown(names)}.")
    return [video for video in videos if not wanted or video.name in wanted]


def video_files(data: str) -> list[Path]:
    """The files of all videos that a command could read."""
    if data == "-" or not Path(data).exists():
        return []
    return [path for video in _all_videos(Path(data)) for path in (video.truth, video.detections) if path is not None]


def _all_videos(path: Path) -> list[Video]:
    return _in_folder(path) if path.is_dir() else [_of_file(path)]


def _first(folder: Path, stem: str) -> Path | None:
    return next((folder / f"{stem}{ending}" for ending in _ENDINGS if (folder / f"{stem}{ending}").is_file()), None)


def _as_folder(folder: Path) -> Video:
    return Video(folder.resolve().name, _first(folder / "gt", "gt"), _first(folder / "det", "det"))


def _in_folder(folder: Path) -> list[Video]:
    own = _as_folder(folder)
    if own.truth or own.detections:
        return [own]
    files = (re.fullmatch(r"(.*?)\.(gt|det)\.txt.*", file.name) for file in folder.iterdir())
    names = sorted({match[1] for match in files if match})
    videos = [_as_folder(one)._replace(name=one.name) for one in sorted(folder.iterdir()) if one.is_dir()]
    videos += [Video(name, _first(folder, f"{name}.gt"), _first(folder, f"{name}.det")) for name in names]
    return [video for video in videos if video.truth or video.detections]


def _of_file(path: Path) -> Video:
    for kind, other in (("gt", "det"), ("det", "gt")):
        name, middle, _ = path.name.partition(f".{kind}.txt")
        if middle:
            beside = _first(path.parent, f"{name}.{other}")
            return Video(name, path, beside) if kind == "gt" else Video(name, beside, path)
    return Video(path.name.split(".")[0], path, path)


def read_boxes(data: str | Path) -> Any:
    """Boxes of a file, or of standard input."""
    return read_text(data, parse_mot, "boxes")
