"""The tempered zero-one head: scores, probabilities and both products of the gradient by chunks of rows.

With the sparsemax threshold ``tau`` of the scores ``f`` the adversary plays ``q = softmax(min(f, tau) / smoothing)``,
and the loss is ``1 + smoothing * logsumexp(min(f, tau) / smoothing) - f_y``. Every class has its share, so the three
products remain; but the gradient of a chunk is made while its scores are at hand, in their place, and on CUDA products
skip blocks whose probabilities are all negligible, if the first chunk has enough of them
(:mod:`nashlearn.torch.triton_tempered`).
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from nashlearn.torch.checks import sum_type
from nashlearn.torch.linear_products import accumulator, add_product, arriving, capturing, primitives, score_chunks

__all__ = ["losses_and_gradients"]

_WORTH_SKIPPING = 0.5  # share of live blocks below which skipping the others pays
_SOME = 8  # blocks of rows, one of which is looked at for that
_WORTH_A_LOOK = 2**40  # multiplications of a product from which it pays to wait for that share


def _rows(n: int, d: int, k: int) -> int:
    """Rows of a chunk, so that it and the gradients take half of what all scores and the gradients would take.

    At least an eighth of the rows, since each chunk adds to the whole gradient of the weight. The half may be passed by
    a hundredth.
    """
    return max(n // 8, int((n * k - n * d - k * d) * 1.02) // (2 * k))


def losses_and_gradients(
    h: Tensor, weight: Tensor, bias: Tensor | None, target: Tensor, ignore_index: int, smoothing: float,
    scale: Tensor | None, needs: Sequence[bool],
) -> tuple[Tensor, Tensor | None, Tensor | None, Tensor | None]:  # fmt: skip
    """The loss of each row; with ``scale`` also the gradients that are needed of the losses times ``scale``.

    Gradients have the type of :func:`nashlearn.torch.linear_products.accumulator`.
    """
    (n, d), k = h.shape, len(weight)
    wide = sum_type(h.dtype)
    total = accumulator(h.dtype, n, k)
    rows = h.new_empty(n, dtype=wide)
    dh = h.new_empty(h.shape, dtype=total) if scale is not None and needs[0] else None
    dw = weight.new_empty(weight.shape, dtype=total) if scale is not None and needs[1] else None
    db = weight.new_zeros(k, dtype=wide) if scale is not None and needs[2] and n == 0 else None
    at, skip, large = primitives(h.device), False, n * d * k >= _WORTH_A_LOOK
    for part, chunk in score_chunks(h, weight, bias, _rows(n, d, k)):
        first = part.start == 0
        share = None if scale is None else scale[part]
        every = 1 if skip else _SOME if first and large else 0
        live = at.temper(chunk, target[part], ignore_index, smoothing, rows[part], share, every)
        if share is None:
            continue
        look = first and large and live is not None and part.stop < n and not capturing(h.device)
        alive = arriving(live.float().mean()) if look else None
        if needs[2]:
            own = chunk.sum(0, dtype=wide)
            db = own if db is None else db.add_(own)
        if skip:
            at.live_products(chunk, live, h[part], weight, None if dh is None else dh[part], dw)
            continue
        if dh is not None:
            add_product(dh[part], chunk, weight, first=True)
        if dw is not None:
            add_product(dw, chunk.t(), h[part], first)
        if alive is not None:  # one look for the batch, while the products run
            skip = alive() < _WORTH_SKIPPING
    if dw is not None and n == 0:
        dw.zero_()
    return rows, dh, dw, None if db is None else db.to(total)
