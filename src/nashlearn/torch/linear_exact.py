"""The exact zero-one head: two of the three matrix products of a linear layer's training step disappear.

The adversary is uniform on the support ``S`` of ``sparsemax(f)``, so ``q - y`` has ``|S| + 1`` entries in a row:
``dh = scale (sum_S W_j / |S| - W_y)`` gathers as many rows of ``W``, and a row of ``dW`` sums those rows of ``h`` that
have its class in their support. Of the forward pass a bit for each score remains, and nothing waits for the host. The
backward pass lists the entries, by row and sorted by class. If there turn out to be many, as at the start of training,
it expands the bits of a block of classes at a time for two ordinary products.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from nashlearn.torch import linear_host
from nashlearn.torch.checks import sum_type
from nashlearn.torch.linear_products import add_product, arriving, capturing, primitives, score_chunks

__all__ = ["backward", "forward"]

_PARTS = 4
_WORTH_LISTING = {"cuda": 1 / 128, "cpu": 1 / 16}  # share of the entries: beyond, products are faster
_USUAL = 32  # entries of a row for which there is room at first
_BLOCK = 2**26  # bytes of an expanded block

Gradients = tuple[Tensor | None, Tensor | None, Tensor | None]


def forward(
    h: Tensor, weight: Tensor, bias: Tensor | None, target: Tensor, ignore_index: int, keep: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """The loss of each row, the supports as bits if these are to be kept, and one over their sizes."""
    (n, _), k = h.shape, len(weight)
    wide = sum_type(h.dtype)
    rows, inverse = h.new_empty(n, dtype=wide), h.new_empty(n, dtype=wide)
    bits = h.new_empty((n, linear_host.row_bytes(k)) if keep else (0, 0), dtype=torch.uint8)
    for part, chunk in score_chunks(h, weight, bias, n // _PARTS):
        kept = bits[part] if keep else None
        primitives(h.device).support(chunk, target[part], ignore_index, rows[part], kept, inverse[part])
    return rows, bits, inverse


def backward(
    scale: Tensor, h: Tensor, weight: Tensor, target: Tensor, ignore_index: int, bits: Tensor, inverse: Tensor,
    needs: Sequence[bool],
) -> Gradients:  # fmt: skip
    """Gradients by ``h``, ``weight`` and the bias of the losses times ``scale``, as far as each is needed."""
    n, k = len(h), len(weight)
    size = (1.0 / inverse).nan_to_num_(0.0).round_().to(torch.int64)
    pointer = torch.nn.functional.pad((size + 1).where(target != ignore_index, 0).cumsum(0), (1, 0))
    about = (bits, inverse, scale, target, ignore_index)
    if capturing(h.device):
        return _by_products(h, weight, about, needs)
    if h.is_cuda:  # which a graph that is recorded later needs in this thread, and cannot make
        torch.cuda.current_blas_handle()
    most = int(n * k * _WORTH_LISTING.get(h.device.type, 1 / 16))
    # Where the number of entries is still on its way to the host, nothing waits: as if there were few.
    many = arriving(pointer[-1])
    room = min(_USUAL * n, most) if h.is_cuda else int(many())
    if room <= most:
        gradients = _by_lists(h, weight, about, pointer, room, needs)
        if many() <= room:
            return gradients
        del gradients
    if many() <= most:
        return _by_lists(h, weight, about, pointer, int(many()), needs)
    return _by_products(h, weight, about, needs)


def _by_lists(h: Tensor, weight: Tensor, about: tuple, pointer: Tensor, room: int, needs: Sequence[bool]) -> Gradients:
    """Sums over the entries of ``q - y``, by row and by class; nothing of use if there are more than ``room``."""
    n, k = len(h), len(weight)
    at = primitives(h.device)
    label, row, value = at.entries(*about, pointer, k, room)
    dh = at.bags(weight, label, value, pointer) if needs[0] else None
    if not (needs[1] or needs[2]):
        return dh, None, None
    label, order = label.sort(stable=True)  # where there is room left the class is k
    by_class = torch.searchsorted(label, torch.arange(k + 1, dtype=label.dtype, device=h.device))
    row, value = row[order], value[order]
    dw = at.bags(h, row, value, by_class, label) if needs[1] else None
    db = at.bags(h.new_ones(n, 1), row, value, by_class, label)[:, 0] if needs[2] else None
    return dh, dw, db


def _by_products(h: Tensor, weight: Tensor, about: tuple, needs: Sequence[bool]) -> Gradients:
    """The same for supports of any size: ``q - y`` of a block of classes at a time, and two products with it."""
    n, k = len(h), len(weight)
    at = primitives(h.device)
    tile = 8 * linear_host.width(k)
    block = max(1, _BLOCK // max(1, n * h.element_size() * tile)) * tile
    wide = sum_type(h.dtype)
    dh = h.new_zeros(h.shape, dtype=wide) if needs[0] else None
    dw = torch.empty_like(weight) if needs[1] else None
    db = weight.new_empty(k) if needs[2] else None
    for start in range(0, k, block):
        classes = range(start, min(start + block, k))
        change = at.expand(*about, classes, k, h.dtype)
        part = slice(classes.start, classes.stop)
        if dh is not None:
            add_product(dh, change, weight[part], first=False)
        if dw is not None:
            torch.mm(change.t(), h, out=dw[part])
        if db is not None:
            db[part] = change.sum(0, dtype=wide)
    return None if dh is None else dh.to(h.dtype), dw, db
