"""What the linear heads do to a chunk of scores in main memory; ``triton_linear`` has the same names on CUDA.

The support of a row is kept as bits: class ``8 W t + W s + c`` is bit ``s`` of byte ``W t + c``, with the ``W`` of
:func:`width`. That order lets a kernel read neighbouring scores and write neighbouring bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from nashlearn.torch import host
from nashlearn.torch.checks import counted_labels, shares

__all__ = ["bags", "dot", "entries", "expand", "row_bytes", "scale", "scales", "support", "temper", "width"]

_NO_PARAMS = torch.empty(0, dtype=torch.float64)
_ROWS = 256


def width(k: int) -> int:
    """The ``W`` of the order of bits."""
    return min(1024, max(16, 1 << (-(-k // 8) - 1).bit_length()))


def row_bytes(k: int) -> int:
    """Bytes of a row's support."""
    return -(-k // (8 * width(k))) * width(k)


def _pack(mask: Tensor) -> Tensor:
    n, k = mask.shape
    padded = torch.nn.functional.pad(mask, (0, row_bytes(k) * 8 - k)).view(n, -1, 8, width(k)).to(torch.uint8)
    step = torch.arange(8, dtype=torch.uint8, device=mask.device)[:, None]
    return (padded << step).sum(2, dtype=torch.uint8).view(n, -1)


def _unpack(bits: Tensor, w: int) -> Tensor:
    step = torch.arange(8, dtype=torch.uint8, device=bits.device)[:, None]
    return ((bits.reshape(len(bits), -1, 1, w) >> step) & 1).view(len(bits), -1)


def support(
    scores: Tensor, target: Tensor, ignore_index: int, rows: Tensor, bits: Tensor | None, inverse: Tensor
) -> None:  # fmt: skip
    """The zero-one game of each row: its loss, the adversary's support as bits, and one over its size."""
    counted, label = counted_labels(target, ignore_index, scores.shape[1])
    value, q, _ = host.solve(scores, _NO_PARAMS, "zero_one", 0.0)
    truth = scores.gather(1, label[:, None])[:, 0].to(value.dtype)
    rows.copy_((value.to(truth.device) - truth).where(counted, 0.0))
    played = q > 0
    size = played.sum(1).to(inverse.dtype)
    inverse.copy_((1.0 / size).where(size > 0, torch.nan))
    if bits is not None:
        bits.copy_(_pack(played))


def entries(
    bits: Tensor, inverse: Tensor, scale: Tensor, target: Tensor, ignore_index: int, pointer: Tensor, k: int,
    room: int,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Class, row and value of each entry of ``(q - y) * scale``, row by row as ``pointer`` says; the label comes last.

    A label that is also in the support has two entries. ``room`` is for devices that do not know how many there are.
    """
    counted = target != ignore_index
    found = []
    for start in range(0, len(bits), _ROWS):
        played = _unpack(bits[start : start + _ROWS], width(k)) * counted[start : start + _ROWS, None]
        row, label = played.nonzero(as_tuple=True)
        found.append((row + start, label))
    own = counted.nonzero()[:, 0]
    row = torch.cat([row for row, _ in found] + [own])
    label = torch.cat([label for _, label in found] + [target[own].to(torch.int64)])
    main = scale * inverse
    truth = (-scale).where(inverse == inverse, torch.nan)
    value = torch.cat([main[row[: len(row) - len(own)]], truth[own]])
    order = row.sort(stable=True).indices
    return label[order], row[order], value[order]


def bags(source: Tensor, index: Tensor, value: Tensor, pointer: Tensor, owner: Tensor | None = None) -> Tensor:
    """Row ``r`` is the sum of ``value[e] * source[index[e]]`` over ``pointer[r] <= e < pointer[r + 1]``.

    ``owner[e]``, the ``r`` to which an entry belongs, is for devices that split long sums.
    """
    wide = source.to(value.dtype)
    sums = torch.nn.functional.embedding_bag(
        index, wide, pointer, mode="sum", per_sample_weights=value, include_last_offset=True
    )
    return sums.to(source.dtype)


def expand(
    bits: Tensor, inverse: Tensor, scale: Tensor, target: Tensor, ignore_index: int, classes: range, k: int,
    dtype: torch.dtype,
) -> Tensor:  # fmt: skip
    """``(q - y) * scale`` of some ``classes``, which begin and end with whole tiles of bits or with the last class."""
    w = width(k)
    played = _unpack(bits[:, classes.start // 8 : -(-classes.stop // (8 * w)) * w], w)[:, : len(classes)]
    change = played.to(inverse.dtype) * inverse[:, None]
    own = torch.arange(classes.start, classes.stop, device=bits.device)[None, :] == target[:, None]
    change = (change - own.to(change.dtype)) * scale[:, None]
    return change.where((target != ignore_index)[:, None], 0.0).to(dtype)


def temper(
    scores: Tensor, target: Tensor, ignore_index: int, smoothing: float, rows: Tensor, share: Tensor | None, every: int
) -> None:
    """The tempered loss of each row; with ``share`` the scores are overwritten by ``(q - y) * share``.

    Products here skip no blocks, so there is nothing to look for in ``every`` so many of them.
    """
    counted, label = counted_labels(target, ignore_index, scores.shape[1])
    value, change, _ = host.solve(scores, _NO_PARAMS, "zero_one", 0.0, smoothing)
    truth = scores.gather(1, label[:, None])[:, 0].to(value.dtype)
    rows.copy_((value.to(truth.device) - truth).where(counted, 0.0))
    if share is not None:
        change = change.to(scores.device)
        change.scatter_add_(1, label[:, None], change.new_full((1, 1), -1.0).expand(len(change), 1))
        change.mul_(share[:, None]).masked_fill_(~counted[:, None], 0.0)
        scores.copy_(change)


def scales(
    target: Tensor, share: Tensor | None, ignore_index: int, mean: bool, kind: torch.dtype
) -> tuple[Tensor, Tensor]:
    """What multiplies the loss of each row, 0 where it does not count, and the mass by which that is divided.

    For a ``mean`` that is the sum of the weights ``share``, 1 if there are none, of the rows that count; else 1.
    """
    counted = target != ignore_index
    weights, mass = shares(counted, share, "mean" if mean else "sum", kind)
    return (weights / mass).where(counted, 0.0), mass


def dot(rows: Tensor, scale: Tensor, mass: Tensor, mean: bool, kind: torch.dtype) -> Tensor:
    """The sum of ``rows * scale`` as this type, NaN for a mean over nothing."""
    total = (rows * scale).sum()
    return (total * (mass[0] / mass[0]) if mean else total).to(kind)


def scale(tensors: Sequence[Tensor], factor: Tensor) -> None:
    """Tensors times a number, in place."""
    for x in tensors:
        x.mul_(factor)
