"""Features of pairs of boxes in consecutive frames.

They are those of [kim2012]_ that [fathony2019]_, sec. 4.4.1, lists: overlap, distance of the centres, distances of
colour and of texture histograms, motion; and a constant for leaving and one for entering. Motion, which the papers take
from optical flow, comes from the boxes alone: each box is moved on by what it moved since the frame before, where it
and a box there overlap each other best.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from nashlearn.datasets.mot import Boxes

__all__ = ["FEATURE_NAMES", "consecutive", "describe", "frame_pairs", "overlap", "pair_features"]

_REGIONS = {  # of a box: from which share of its height to which, and of its width
    "whole": (0, 1, 0, 1),
    "top": (0, 1 / 3, 0, 1),
    "middle": (1 / 3, 2 / 3, 0, 1),
    "bottom": (2 / 3, 1, 0, 1),
    "left": (0, 1, 0, 1 / 2),
    "right": (0, 1, 1 / 2, 1),
    "centre": (1 / 4, 3 / 4, 1 / 4, 3 / 4),
}
_CHANNELS = ("red", "green", "blue")
_BINS = 8
_PATTERNS = 10  # local binary patterns by the number of bright ones of eight neighbours; the last: the irregular rest
_GEOMETRY = ("overlap", "distance", "height", "moved overlap", "moved distance")
_LOOKS = tuple(
    f"{kind} {region} {channel}" for kind in ("colour", "texture") for region in _REGIONS for channel in _CHANNELS
)
FEATURE_NAMES = _GEOMETRY + _LOOKS


def centres(boxes: np.ndarray) -> np.ndarray:
    """Centres (n, 2) of boxes (n, 4)."""
    return boxes[:, :2] + 0.5 * boxes[:, 2:]


def overlap(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Intersection over union (n1, n2) of boxes ``a`` (n1, 4) and ``b`` (n2, 4): left, top, width, height."""
    low = np.maximum(a[:, None, :2], b[None, :, :2])
    high = np.minimum((a[:, :2] + a[:, 2:])[:, None], (b[:, :2] + b[:, 2:])[None])
    both = np.prod(np.maximum(high - low, 0.0), axis=2)
    return both / (np.prod(a[:, 2:], axis=1)[:, None] + np.prod(b[:, 2:], axis=1)[None] - both)


def describe(thumbs: np.ndarray, hist: np.ndarray | None = None) -> np.ndarray:
    """Square roots (n, 42, 10) of histograms of colour and of texture, each summing to 1 before the root.

    For the whole box, its thirds, its halves and its centre, and for each channel: colours in 8 bins, and local binary
    patterns. The inner product of two such roots is the Bhattacharyya coefficient of the histograms.

    Parameters
    ----------
    thumbs : ndarray (n, height, width, 3) of bytes
        Small pictures of the boxes.
    hist : ndarray (n, 3, 3, 8), optional
        Histograms of the thirds and channels of the full pictures, which replace those of the small ones.
    """
    thumbs = np.asarray(thumbs)
    if thumbs.ndim != 4 or thumbs.shape[3] != 3 or min(thumbs.shape[1:3]) < 5:
        raise ValueError(f"thumbs must have shape (n, height, width, 3), at least 5 x 5; got {thumbs.shape}.")
    colour = _histograms(thumbs // (256 // _BINS), _BINS)
    if hist is not None:
        if hist.shape != (len(thumbs), 3, 3, _BINS):
            raise ValueError(f"hist must have shape {(len(thumbs), 3, 3, _BINS)}; got {hist.shape}.")
        colour[:, 1:4] = hist
        colour[:, 0] = hist.sum(axis=1, dtype=np.float64)
    texture = _histograms(_patterns(thumbs), _PATTERNS)
    both = np.zeros((len(thumbs), len(_LOOKS), _PATTERNS))
    half = len(_LOOKS) // 2
    both[:, :half, :_BINS] = colour.reshape(len(thumbs), half, _BINS)
    both[:, half:] = texture.reshape(len(thumbs), half, _PATTERNS)
    return np.sqrt(both / np.maximum(both.sum(axis=2, keepdims=True), 1.0))


def _patterns(thumbs: np.ndarray) -> np.ndarray:
    """Rotation-invariant uniform local binary patterns (n, height - 2, width - 2, 3) [ojala2002]_.

    The number of the eight neighbours that are at least as bright, where those form one run around the pixel.
    """
    rows, columns = thumbs.shape[1] - 2, thumbs.shape[2] - 2
    around = [(0, 0), (0, 1), (0, 2), (1, 2), (2, 2), (2, 1), (2, 0), (1, 0)]
    centre = thumbs[:, 1:-1, 1:-1]
    bright = np.stack([thumbs[:, r : r + rows, c : c + columns] >= centre for r, c in around])
    changes = (bright != np.roll(bright, 1, axis=0)).sum(axis=0)
    return np.where(changes <= 2, bright.sum(axis=0), _PATTERNS - 1)


def _histograms(codes: np.ndarray, bins: int) -> np.ndarray:
    """Counts (n, regions, channels, bins) of integer codes (n, rows, columns, channels) in each region."""
    n, rows, columns, channels = codes.shape
    r, c = (at.ravel() for at in np.meshgrid(np.arange(rows) / rows, np.arange(columns) / columns, indexing="ij"))
    top, bottom, left, right = np.array(list(_REGIONS.values())).T[:, :, None]
    inside = ((r >= top) & (r < bottom) & (c >= left) & (c < right)).astype(np.float64)
    flat = codes.reshape(n, rows * columns, channels)
    return np.stack([np.einsum("rp,npc->nrc", inside, flat == b) for b in range(bins)], axis=3)


def _motion(boxes: Boxes, pairs: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """How far (n, 2) each box moved since the frame before: 0 unless a box there and it overlap each other best."""
    moved, at = np.zeros((len(boxes), 2)), centres(boxes.box)
    for earlier, later in pairs:
        if earlier.size and later.size:
            shared = overlap(boxes.box[earlier], boxes.box[later])
            best = shared.argmax(axis=0)
            mutual = (shared.argmax(axis=1)[best] == np.arange(later.size)) & (shared.max(axis=0) > 0.0)
            moved[later[mutual]] = (at[later] - at[earlier[best]])[mutual]
    return moved


def check_looks(looks: np.ndarray | None, boxes: Boxes) -> None:
    """Refuse descriptions that are not one for each box."""
    if looks is not None and len(looks) != len(boxes):
        raise ValueError(f"looks must have one entry for each of the {len(boxes)} boxes; got {len(looks)}.")


def consecutive(boxes: Boxes, step: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Rows of the boxes of every two frames that lie ``step`` apart, in the order of time."""
    if not (isinstance(step, int) and step >= 1):
        raise ValueError(f"step must be a positive integer; got {step!r}.")
    rows = boxes.rows_by_frame()
    return list(zip(rows, rows[step:], strict=False))


def pair_features(a: np.ndarray, b: np.ndarray, moved: np.ndarray, looks: Any = None) -> np.ndarray:
    """Features (n1, n2, 5 or 47), named by ``FEATURE_NAMES``, of boxes ``a`` (n1, 4) with boxes ``b`` (n2, 4).

    Parameters
    ----------
    a, b : ndarrays
        Left, top, width, height.
    moved : ndarray (n1, 2)
        How far each box of ``a`` is expected to move.
    looks : pair of ndarrays, optional
        What :func:`describe` says of ``a`` and of ``b``; without it there are five features.
    """
    height = 0.5 * (a[:, 3][:, None] + b[:, 3][None])
    ahead = np.column_stack([a[:, :2] + moved, a[:, 2:]])
    apart, then = (cdist(centres(one), centres(b)) / height for one in (a, ahead))
    taller = np.abs(np.log(a[:, 3][:, None] / b[:, 3][None]))
    pairs = np.stack([overlap(a, b), apart, taller, overlap(ahead, b), then], axis=2)
    if looks is None:
        return pairs
    alike = np.einsum("ikb,jkb->ijk", *looks)
    return np.concatenate([pairs, np.sqrt(np.maximum(1.0 - alike, 0.0))], axis=2)


def frame_pairs(boxes: Boxes, looks: np.ndarray | None = None, step: int = 1) -> list[Any]:
    """Pairs of frames as examples for :class:`nashlearn.NashMatcher`: (pair, leave, enter) features of each.

    Parameters
    ----------
    boxes : Boxes
    looks : ndarray, optional
        From :func:`describe`, one for each box.
    step : int
        How many frames lie between the two of a pair, plus one.

    Returns
    -------
    list of tuples
        For frames 1 and 1 + step, 2 and 2 + step, …: :func:`pair_features` and the constant features (n1, 1) of leaving
        and (n2, 1) of entering.
    """
    check_looks(looks, boxes)
    pairs = consecutive(boxes, step)
    moved = _motion(boxes, pairs)
    return [
        (
            pair_features(boxes.box[a], boxes.box[b], moved[a], None if looks is None else (looks[a], looks[b])),
            np.ones((a.size, 1)),
            np.ones((b.size, 1)),
        )
        for a, b in pairs
    ]
