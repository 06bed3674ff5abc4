"""The sweep of the zero-one chain game on CUDA: one program for each sequence.

As :mod:`nashlearn.kernels.forest` does, a round tells messages backwards at the replies that are there, then
goes forward once and renews each reply by the sparsemax threshold; a program ends its rounds when its own gap is small
enough. Numbers are logarithms to base 2 in units of the smoothing, messages scaled by their largest entry. Where all
edges share one table, a message is one product with that table's exponentials, unless that would underflow: then, and
for tables of each edge's own, the sum is taken in the log domain, so that any range of scores will do.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from nashlearn.torch.triton_rows import LOG2_E, accumulator, root, sums

__all__ = ["WIDEST", "solve"]

WIDEST = 256  # labels, whose table a program holds in registers
# Warps by padded number of labels: about 64 entries of a shared table in each lane, half of an edge's own.
_WARPS = {16: 1, 32: 1, 64: 4, 128: 8, 256: 32}


@triton.jit
def _table(tables, place, inside, scale, ACC: tl.constexpr):
    return tl.load(tables + place, mask=inside, other=float("-inf")).to(ACC) * scale


@triton.jit
def _pooled(z):
    """Base-2 log-sum-exp over the rows of a tile; -inf where all are."""
    top = tl.max(z, 0)
    top = tl.where(top > float("-inf"), top, 0.0)
    return top + tl.log2(tl.sum(tl.exp2(z - top[None, :]), 0))


@triton.jit
def _pooled_rows(x, tables, scratch, a, live, scale, K: tl.constexpr, P: tl.constexpr, ACC: tl.constexpr):
    """The same for ``x`` added to the rows of a table, one after another: slow, but it needs no registers."""
    tl.debug_barrier()
    tl.store(scratch + a, x, mask=live)
    tl.debug_barrier()
    top = tl.full((P,), float("-inf"), ACC)
    mass = tl.full((P,), 0.0, ACC)
    for i in range(K):
        z = tl.load(tables + i * K + a, mask=live, other=float("-inf")).to(ACC) * scale + tl.load(scratch + i)
        higher = tl.maximum(top, z)
        safe = tl.where(higher > float("-inf"), higher, 0.0)
        mass = mass * tl.exp2(top - safe) + tl.exp2(z - safe)
        top = higher
    return tl.where(top > float("-inf"), top, 0.0) + tl.log2(mass)


@triton.jit
def _message(
    x, W, height, tables, place, inside, scratch, a, live, scale,
    SHARED: tl.constexpr, K: tl.constexpr, P: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """What a node with numbers ``x`` tells the next, and what was taken out of it, which keeps it near 0.

    ``W`` is exp2 of a shared table, scaled and less its ``height``, with rows along ``x``.
    """
    best = tl.max(x, 0)
    if SHARED:
        mass = tl.sum(tl.exp2(x - best)[:, None] * W, 0)
        told = tl.log2(mass)
        if tl.min(tl.where(live, mass, 1.0), 0) < 1e-30:
            told = _pooled_rows(x, tables, scratch, a, live, scale, K, P, ACC) - best - height
    else:
        told = _pooled(x[:, None] + _table(tables, place, inside, scale, ACC)) - best
    return told, best + height


@triton.jit
def _threshold(c, live, width, P: tl.constexpr, ACC: tl.constexpr):
    """The reply ``p`` with ``width p = [c - tau]_+``: Newton's iteration from below."""
    v = tl.where(live, tl.maximum((c - tl.max(c, 0)) / width, -2.0), -2.0)
    # The root is where the entries above it exceed it by 1 in all.
    return tl.maximum(v - root(v, tl.full((), -1.0, ACC), P), 0.0)


@triton.jit
def _backwards(
    node, tables, p, up, outside, scratch, W, height, n, stride, a, live, turned, square, scale,
    SHARED: tl.constexpr, K: tl.constexpr, P: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """Messages at the replies that are there; the logarithm of their mass, and the sum of gaps."""
    below = tl.full((P,), 0.0, ACC)
    total = tl.full((), 0.0, ACC)
    gap = tl.full((), 0.0, ACC)
    tables += (n - 1) * stride
    for i in range(n):
        t = n - 1 - i
        at = t * K + a
        tables -= stride
        tl.store(up + at, below, mask=live)
        reply = tl.load(p + at, mask=live, other=0.0)
        x = (tl.load(node + at, mask=live, other=float("-inf")).to(ACC) - reply) * scale + below
        z = x + tl.load(outside + at, mask=live, other=0.0)
        best = tl.max(z, 0)
        q = tl.exp2(z - best)
        mass, met = sums(q, q * reply, 0)
        gap += (1.0 - met) / mass
        below, top = _message(
            x, W, height, tables, turned, square & (t > 0), scratch, a, live, scale, SHARED, K, P, ACC
        )
        total += tl.where(t > 0, top, best + tl.log2(mass))
    return total, gap


@triton.jit
def _forwards(
    node, tables, p, up, outside, scratch, W, height, n, stride, a, live, straight, square, scale,
    SHARED: tl.constexpr, K: tl.constexpr, P: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """Renew each reply by the sparsemax threshold, with messages from those before it."""
    above = tl.full((P,), 0.0, ACC)
    for t in range(n):
        at = t * K + a
        tl.store(outside + at, above, mask=live)
        x = above + tl.load(node + at, mask=live, other=float("-inf")).to(ACC) * scale
        reply = _threshold(x + tl.load(up + at, mask=live, other=0.0), live, scale, P, ACC)
        tl.store(p + at, reply, mask=live)
        x -= scale * reply
        above, _ = _message(
            x, W, height, tables, straight, square & (t < n - 1), scratch, a, live, scale, SHARED, K, P, ACC
        )
        tables += stride


@triton.jit
def _marginals(
    node, tables, target, p, up, outside, change, joints, n, stride, a, live, straight, square, scale,
    SHARED: tl.constexpr, K: tl.constexpr, P: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """Store marginals less the truth; the truth's score, and the sum over edges where they share a table."""
    score = tl.full((), 0.0, ACC)
    pairs = tl.full((P, P), 0.0, ACC)
    for t in range(n):
        at = t * K + a
        x = (tl.load(node + at, mask=live, other=float("-inf")).to(ACC) - tl.load(p + at, mask=live, other=0.0)) * scale
        x += tl.load(outside + at, mask=live, other=0.0)
        z = x + tl.load(up + at, mask=live, other=0.0)
        q = tl.exp2(z - tl.max(z, 0))
        q = q / tl.sum(q, 0)
        more = t < n - 1
        after = tl.load(node + at + K, mask=live & more, other=float("-inf")).to(ACC)
        after -= tl.load(p + at + K, mask=live & more, other=0.0)
        after = after * scale + tl.load(up + at + K, mask=live & more, other=0.0)
        joint = x[:, None] + after[None, :] + _table(tables, straight, square & more, scale, ACC)
        joint = tl.exp2(joint - tl.max(tl.max(joint, 0), 0))
        joint = joint / tl.sum(tl.sum(joint, 0), 0)
        if target is not None:
            y = tl.load(target + t)
            known = (y >= 0) & (y < K)
            score += tl.load(node + t * K + y, mask=known, other=float("nan")).to(ACC)
            q -= (a == y).to(ACC)
            follows = tl.load(target + t + 1, mask=more, other=-1)
            known = known & (follows >= 0) & (follows < K)
            score += tl.where(
                more, tl.load(tables + y * K + follows, mask=known & more, other=float("nan")).to(ACC), 0.0
            )
            joint -= ((a[:, None] == y) & (a[None, :] == follows)).to(ACC)
        tl.store(change + at, q, mask=live)
        if SHARED:
            pairs += tl.where(more, joint, 0.0)
        else:
            tl.store(joints + straight, joint, mask=square & more)
        tables += stride
        joints += stride
    return score, pairs


@triton.jit
def _clear_padding(
    change, change_edge, p, pairs, n, steps, stride, a, live, straight, square,
    SHARED: tl.constexpr, K: tl.constexpr, P: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """Zeros behind the sequence; of a shared table the sum over its edges, ``pairs``, is stored instead."""
    for t in range(n, steps):
        tl.store(change + t * K + a, tl.full((P,), 0.0, ACC), mask=live)
        tl.store(p + t * K + a, tl.full((P,), 0.0, ACC), mask=live)
    if SHARED:
        tl.store(change_edge + straight, pairs, mask=square)
    else:
        for t in range(tl.maximum(n, 1), steps):
            tl.store(change_edge + (t - 1) * stride + straight, pairs, mask=square)


@triton.jit
def _sweep(
    node, edge, turned_edge, target, lengths, loss, gaps, change, change_edge, p, up, outside, steps,
    smoothing, tol, max_iter,
    K: tl.constexpr, P: tl.constexpr, SHARED: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(0).to(tl.int64)
    a = tl.arange(0, P)
    live = a < K
    straight = a[:, None] * K + a[None, :]
    turned = straight  # of a shared table there is a turned copy, whose rows are read in order
    if not SHARED:
        turned = a[:, None] + a[None, :] * K
    square = live[:, None] & live[None, :]
    scale = LOG2_E / (tl.full((), 1.0, ACC) * smoothing)
    given = tl.load(lengths + pid).to(tl.int32)
    n = tl.maximum(given, 0)
    node += pid * steps * K
    p += pid * steps * K
    up += pid * steps * K
    outside += pid * steps * K
    change += pid * steps * K
    if target is not None:
        target += pid * steps
    stride = 0
    height = tl.full((), 0.0, ACC)
    if SHARED:
        change_edge += pid * K * K
        height = tl.max(tl.max(_table(edge, straight, square, scale, ACC), 0), 0)
    else:
        edge += pid * (steps - 1) * K * K
        turned_edge += pid * (steps - 1) * K * K
        change_edge += pid * (steps - 1) * K * K
        stride = K * K
    for t in range(n):
        tl.store(p + t * K + a, tl.full((P,), 1.0 / K, ACC), mask=live)
        tl.store(outside + t * K + a, tl.full((P,), 0.0, ACC), mask=live)
    tl.debug_barrier()
    W = tl.full((P, P), 0.0, ACC)
    total = tl.full((), 0.0, ACC)
    gap = tl.full((), 0.0, ACC)
    rounds = 0
    playing = n > 0
    while playing:
        if SHARED:
            W = tl.exp2(_table(turned_edge, straight, square, scale, ACC) - height)
        total, gap = _backwards(
            node, turned_edge, p, up, outside, change, W, height, n, stride, a, live, turned, square, scale,
            SHARED, K, P, ACC,
        )  # fmt: skip
        tl.debug_barrier()
        playing = (rounds < max_iter) & ((rounds == 0) | (gap > tol * n))
        rounds += 1
        if playing:
            if SHARED:
                W = tl.exp2(_table(edge, straight, square, scale, ACC) - height)
            _forwards(
                node, edge, p, up, outside, change, W, height, n, stride, a, live, straight, square, scale,
                SHARED, K, P, ACC,
            )  # fmt: skip
            tl.debug_barrier()
    score, pairs = _marginals(
        node, edge, target, p, up, outside, change, change_edge, n, stride, a, live, straight, square, scale,
        SHARED, K, P, ACC,
    )  # fmt: skip
    _clear_padding(change, change_edge, p, pairs, n, steps, stride, a, live, straight, square, SHARED, K, P, ACC)
    value = total / scale + n - score
    tl.store(loss + pid, tl.where(given < 0, float("nan"), tl.where(n > 0, value, 0.0)))
    tl.store(gaps + pid, gap)


def solve(
    node: torch.Tensor, edge: torch.Tensor, target: torch.Tensor | None, lengths: torch.Tensor,
    smoothing: float, tol: float, max_iter: int, room: tuple[torch.Tensor, ...],
) -> None:  # fmt: skip
    """Write loss (b,), gap (b,), ``q - y`` of nodes (b, t, k) and edges, and ``p`` (b, t, k) into ``room``.

    ``edge`` is (k, k), whose gradients are written as (b, k, k), or (b, t - 1, k, k). A negative length gives NaN.
    """
    b, steps, k = node.shape
    loss, gaps, change, change_edge, p = room
    up, outside = torch.empty_like(p), torch.empty_like(p)
    wide = max(16, 1 << (k - 1).bit_length())
    shared = edge.dim() == 2
    turned = edge.t().contiguous() if shared else edge
    warps = _WARPS[wide] if shared else min(2 * _WARPS[wide], 32)
    _sweep[(b,)](
        node, edge, turned, target, lengths, loss, gaps, change, change_edge, p, up, outside, steps,
        smoothing, tol, max_iter, k, wide, shared, accumulator(p.dtype), num_warps=warps,
    )  # fmt: skip
