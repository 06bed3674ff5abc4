"""Linear systems of two players' potentials, for Triton programs that solve one game each.

The potentials of constraint ``k`` for either player meet in a 2 x 2 block, and the system has the form

    [ A   B ]
    [ -B' C ],     A and C symmetric and positive definite,

which elimination with the blocks ``[[A_kk, B_kk], [-B_kk, C_kk]]`` as pivots keeps. Their determinants
``A_kk C_kk + B_kk²`` never vanish, so that nothing is exchanged. Rows of the factor are stored in main memory, four
vectors for each constraint, where a cache holds them: from there all threads read them in the layout that they need,
and no tile is reduced. By symmetry its columns are the same numbers.
"""

from __future__ import annotations

import triton
import triton.language as tl

__all__ = ["eliminate", "substitute"]


@triton.jit
def _entry(x, chosen):
    return tl.sum(tl.where(chosen, x, 0.0), 0)


@triton.jit
def eliminate(A, B, D, C, factor, live, K: tl.constexpr):
    """Factor the system of the first ``live`` constraints, with ``D = -B'``, into ``factor`` (5, K, K)."""
    k = tl.arange(0, K)
    down, across = k[:, None], k[None, :]
    plane = K * K
    i = 0
    while i < live:
        at = factor + i * K
        row = at + across + 0 * down
        here = (down == i) & (across >= i)
        tl.store(row, A, mask=here)
        tl.store(row + plane, -D, mask=here)
        tl.store(row + 2 * plane, -B, mask=here)
        tl.store(row + 3 * plane, C, mask=here)
        tl.debug_barrier()
        a, b, c = tl.load(at + i), tl.load(at + plane + i), tl.load(at + 3 * plane + i)
        scale = 1.0 / (a * c + b * b)
        a, b, c = a * scale, b * scale, c * scale
        tl.store(at + 4 * plane + k, tl.where(k == 0, a, tl.where(k == 1, b, c)))
        left, right = (down > i) & (down < live), (across > i) & (across < live)
        column_a = tl.load(at + down, mask=left, other=0.0)
        column_b = tl.load(at + plane + down, mask=left, other=0.0)
        column_d = tl.load(at + 2 * plane + down, mask=left, other=0.0)
        column_c = tl.load(at + 3 * plane + down, mask=left, other=0.0)
        row_a = tl.load(at + across, mask=right, other=0.0)
        row_b = tl.load(at + plane + across, mask=right, other=0.0)
        row_d = tl.load(at + 2 * plane + across, mask=right, other=0.0)
        row_c = tl.load(at + 3 * plane + across, mask=right, other=0.0)
        # The rows, which are (a, -d) and (-b, c), times the inverse of the pivot.
        aa, ab = c * row_a + b * row_b, -c * row_d - b * row_c
        ba, bb = b * row_a - a * row_b, -b * row_d + a * row_c
        A -= column_a * aa + column_b * ba
        B -= column_a * ab + column_b * bb
        D -= column_d * aa + column_c * ba
        C -= column_d * ab + column_c * bb
        i += 1
    tl.debug_barrier()


@triton.jit
def substitute(g, h, factor, live, K: tl.constexpr):
    """The solution for the right sides ``g`` and ``h`` (K,) of the two players."""
    k = tl.arange(0, K)
    plane = K * K
    i = 0
    while i < live:
        here, left, at = k == i, (k > i) & (k < live), factor + i * K
        a, b = tl.load(at + k, mask=left, other=0.0), tl.load(at + plane + k, mask=left, other=0.0)
        d, c = tl.load(at + 2 * plane + k, mask=left, other=0.0), tl.load(at + 3 * plane + k, mask=left, other=0.0)
        at += 4 * plane
        pivot_a, pivot_b, pivot_c = tl.load(at), tl.load(at + 1), tl.load(at + 2)
        x, y = _entry(g, here), _entry(h, here)
        x, y = pivot_c * x - pivot_b * y, pivot_b * x + pivot_a * y
        g = tl.where(here, x, g - a * x - b * y)
        h = tl.where(here, y, h - d * x - c * y)
        i += 1
    while i > 0:
        i -= 1
        here, left, at = k == i, (k > i) & (k < live), factor + i * K
        a, b = tl.load(at + k, mask=left, other=0.0), tl.load(at + plane + k, mask=left, other=0.0)
        d, c = tl.load(at + 2 * plane + k, mask=left, other=0.0), tl.load(at + 3 * plane + k, mask=left, other=0.0)
        at += 4 * plane
        pivot_a, pivot_b, pivot_c = tl.load(at), tl.load(at + 1), tl.load(at + 2)
        x, y = tl.sum(a * g - d * h, 0), tl.sum(c * h - b * g, 0)
        g = tl.where(here, g - pivot_c * x + pivot_b * y, g)
        h = tl.where(here, h - pivot_b * x - pivot_a * y, h)
    return g, h
