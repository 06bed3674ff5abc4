"""Boxes of objects in videos, in the text format of the MOT challenge, and the five videos of [fathony2019]_.

One box a line: ``frame, id, left, top, width, height, confidence, x, y, z`` with commas between them; the last three,
a position in the world, may be absent. Annotations from MOT16 on have two numbers in their place, class and visibility.
Detections have the id -1.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nashlearn.datasets.home import bunch, check_name, encoded, find, text_lines

__all__ = ["Boxes", "load_tracking", "mot_text", "parse_mot", "read_mot", "tracking_names", "write_mot"]

_VIDEOS = ("TUD-Campus", "TUD-Stadtmitte", "ETH-Sunnyday", "ETH-Bahnhof", "ETH-Pedcross2")
_FIELDS = (7, 9, 10)  # alone, with class and visibility, with a position in the world
_LAST_FRAME = 10_000_000  # four days of video; frames are counted one by one, so a slip must not mean 1e15 of them
_LAST_ID = 2**53  # beyond, numbers are not read exactly
_FRAME_SIZE = (640.0, 480.0)
_APPEARANCE = ("thumbs", "hist", "inside")


@dataclass(frozen=True)
class Boxes:
    """Boxes of a video, one entry in each array for each box.

    Attributes
    ----------
    frame : ndarray (n,) of int
        From 1 on.
    id : ndarray (n,) of int
        The object, at most once in a frame; -1 where it is not known.
    box : ndarray (n, 4)
        Left, top, width, height in pixels.
    confidence : ndarray (n,)
        A detector's, or 1 for annotated boxes and 0 for those that scoring should ignore.
    """

    frame: np.ndarray
    id: np.ndarray
    box: np.ndarray
    confidence: np.ndarray

    def __len__(self) -> int:
        return len(self.frame)

    def __getitem__(self, rows: Any) -> Boxes:
        """The boxes that ``rows``, a mask or positions, select."""
        return Boxes(self.frame[rows], self.id[rows], self.box[rows], self.confidence[rows])

    def with_ids(self, ids: np.ndarray) -> Boxes:
        """The same boxes with other ids."""
        ids = np.asarray(ids)
        if ids.shape != self.id.shape:
            raise ValueError(f"ids must have shape {self.id.shape}, one for each box; got {ids.shape}.")
        return Boxes(self.frame, ids, self.box, self.confidence)

    def rows_by_frame(self, frames: Iterable[int] | None = None) -> list[np.ndarray]:
        """Positions of the boxes of each frame, for frames 1 to the last by default; empty where there are none."""
        wanted = np.arange(1, self.frame.max(initial=0) + 1) if frames is None else np.fromiter(frames, dtype=np.int64)
        order = np.argsort(self.frame, kind="stable")
        first, last = (np.searchsorted(self.frame[order], wanted, side=side) for side in ("left", "right"))
        return [order[a:b] for a, b in zip(first, last, strict=True)]


def tracking_names() -> tuple[str, ...]:
    """The five videos of Table XI of [fathony2019]_, in its order."""
    return _VIDEOS


def read_mot(path: str | Path) -> Boxes:
    """Boxes of a text file, gzipped where its name ends with ``.gz``, see ``parse_mot``."""
    return parse_mot(text_lines(path), str(path))


def parse_mot(lines: Iterable[str], name: str = "boxes") -> Boxes:
    """Boxes of lines of text, in their order.

    Raises
    ------
    ValueError
        With ``name``, where a line is not a box (with its number), or where an object has two boxes in one frame.
    """
    numbered = [(number, line) for number, line in enumerate(lines, start=1) if line.strip()]
    if not numbered:
        raise ValueError(f"{name}: at least one box is needed; the file is empty.")
    rows = np.array([_row(line, f"{name}, line {number}") for number, line in numbered])
    boxes = Boxes(rows[:, 0].astype(np.int64), rows[:, 1].astype(np.int64), rows[:, 2:6].copy(), rows[:, 6].copy())
    seen: dict[tuple[int, int], int] = {}
    for frame, ident, (number, _) in zip(boxes.frame.tolist(), boxes.id.tolist(), numbered, strict=True):
        if ident >= 0 and seen.setdefault((frame, ident), number) != number:
            already = f"object {ident} has a box in frame {frame} already, in line {seen[frame, ident]}."
            raise ValueError(f"{name}, line {number}: {already}")
    return boxes


def _row(line: str, where: str) -> list[float]:
    """The first seven numbers of a line, checked."""
    fields = line.split(",")
    if len(fields) not in _FIELDS:
        raise ValueError(f"{where}: {len(fields)} fields; a box has 7, 9 (class, visibility) or 10 (x, y, z).")
    try:
        numbers = [float(field) for field in fields]
    except ValueError as error:
        raise ValueError(f"{where}: {error}.") from None
    if not np.isfinite(numbers).all():
        raise ValueError(f"{where}: numbers must be finite; got {line.strip()!r}.")
    frame, ident, _, _, width, height = numbers[:6]
    if not (frame.is_integer() and 1 <= frame <= _LAST_FRAME):
        raise ValueError(f"{where}: frames are integers from 1 to {_LAST_FRAME}; got {fields[0]!r}.")
    if not (ident.is_integer() and -1 <= ident <= _LAST_ID):
        raise ValueError(f"{where}: ids are integers from 0 to {_LAST_ID}, or -1 where unknown; got {fields[1]!r}.")
    if not (width > 0 and height > 0):
        raise ValueError(f"{where}: width and height must be positive; got {fields[4]!r} and {fields[5]!r}.")
    return numbers[:7]


def write_mot(path: str | Path, boxes: Boxes) -> None:
    """Write boxes as :func:`read_mot` reads them, gzipped where the name ends with ``.gz``, without positions."""
    Path(path).write_bytes(encoded(path, mot_text(boxes)))


def mot_text(boxes: Boxes) -> str:
    """What :func:`write_mot` writes."""
    columns = (boxes.frame, boxes.id, boxes.box, boxes.confidence)
    return "".join(
        f"{frame},{ident},{','.join(map(_plain, box))},{_plain(confidence)},-1,-1,-1\n"
        for frame, ident, box, confidence in zip(*(one.tolist() for one in columns), strict=True)
    )


def _plain(number: float) -> str:
    """The shortest text that reads as the same number, integers without a point."""
    return str(int(number)) if number.is_integer() else repr(number)


def load_tracking(name: str) -> Any:
    """One of the videos of :func:`tracking_names`.

    Returns
    -------
    sklearn.utils.Bunch
        ``truth`` and ``detections``, :class:`Boxes`; ``frame_size``, width and height in pixels; and what the
        annotated boxes look like, row for row with ``truth``: ``thumbs`` (n, 16, 8, 3), bytes of colour; ``hist``
        (n, 3, 3, 8), histograms of the upper, middle and lower third and of each channel; ``inside`` (n,), the share
        of a box that lies inside the frame.
    """
    check_name("video", name, _VIDEOS)
    truth, detections = (read_mot(find("tracking", f"{name}.{kind}.txt.gz")) for kind in ("gt", "det"))
    path = find("tracking", f"{name}.gt_appearance.npz")
    with np.load(path) as file:
        absent = [key for key in _APPEARANCE if key not in file]
        if absent:
            raise ValueError(f"{path}: {', '.join(absent)} are absent.")
        looks = {key: file[key] for key in _APPEARANCE}
    for key, array in looks.items():
        if len(array) != len(truth):
            raise ValueError(f"{path}: {len(array)} entries of {key} for {len(truth)} boxes.")
    looks["inside"] = looks["inside"] / 255.0
    return bunch(name=name, truth=truth, detections=detections, frame_size=_FRAME_SIZE, **looks)
