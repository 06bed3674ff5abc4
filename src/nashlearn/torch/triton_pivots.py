"""Linear systems of two players' potentials, for Triton programs that solve one game each.

The potentials of constraint ``k`` for either player meet in a 2 x 2 block, and the system has the form

    [ A   B ]
    [ -B' C ],     A and C symmetric and positive definite,

which elimination with the blocks ``[[A_kk, B_kk], [-B_kk, C_kk]]`` as pivots keeps. Their determinants
``A_kk C_kk + B_kk²`` never vanish, so that nothing is exchanged. Columns of the factor are stored in main memory, four
vectors for each constraint, where they stay in the first cache; by symmetry its rows are the same numbers.
"""

from __future__ import annotations

import triton
import triton.language as tl

__all__ = ["eliminate", "substitute"]


@triton.jit
def _row(tile, chosen):
    return tl.sum(tl.where(chosen, tile, 0.0), 0)


@triton.jit
def _entry(x, chosen):
    return tl.sum(tl.where(chosen, x, 0.0), 0)


@triton.jit
def eliminate(A, B, D, C, factor, live, K: tl.constexpr):
    """Factor the system of the first ``live`` constraints, with ``D = -B'``, into ``factor`` (5, K, K)."""
    k = tl.arange(0, K)
    plane = K * K
    i = 0
    while i < live:
        here = k == i
        a, b = _row(A, here[:, None]), -_row(D, here[:, None])
        d, c = -_row(B, here[:, None]), _row(C, here[:, None])
        pivot_a, pivot_b, pivot_c = _entry(a, here), -_entry(d, here), _entry(c, here)
        scale = 1.0 / (pivot_a * pivot_c + pivot_b * pivot_b)
        pivot_a, pivot_b, pivot_c = pivot_a * scale, pivot_b * scale, pivot_c * scale
        left = (k > i) & (k < live)
        a, b, c, d = (
            tl.where(left, a, 0.0), tl.where(left, b, 0.0), tl.where(left, c, 0.0), tl.where(left, d, 0.0),
        )  # fmt: skip
        at = factor + i * K + k
        tl.store(at, a)
        tl.store(at + plane, b)
        tl.store(at + 2 * plane, d)
        tl.store(at + 3 * plane, c)
        inverse = tl.where(here, 0.0, 0.0)
        inverse = tl.where(k == 0, pivot_a, tl.where(k == 1, pivot_b, tl.where(k == 2, pivot_c, inverse)))
        tl.store(at + 4 * plane, inverse)
        # The rows, which are (a, -d) and (-b, c), times the inverse of the pivot.
        aa, ab = pivot_c * a + pivot_b * b, -pivot_c * d - pivot_b * c
        ba, bb = pivot_b * a - pivot_a * b, -pivot_b * d + pivot_a * c
        A -= a[:, None] * aa[None, :] + b[:, None] * ba[None, :]
        B -= a[:, None] * ab[None, :] + b[:, None] * bb[None, :]
        D -= d[:, None] * aa[None, :] + c[:, None] * ba[None, :]
        C -= d[:, None] * ab[None, :] + c[:, None] * bb[None, :]
        i += 1
    tl.debug_barrier()


@triton.jit
def substitute(g, h, factor, live, K: tl.constexpr):
    """The solution for the right sides ``g`` and ``h`` (K,) of the two players."""
    k = tl.arange(0, K)
    plane = K * K
    i = 0
    while i < live:
        here, at = k == i, factor + i * K
        a, b = tl.load(at + k), tl.load(at + plane + k)
        d, c = tl.load(at + 2 * plane + k), tl.load(at + 3 * plane + k)
        pivot_a, pivot_b = tl.load(at + 4 * plane), tl.load(at + 4 * plane + 1)
        pivot_c = tl.load(at + 4 * plane + 2)
        x, y = _entry(g, here), _entry(h, here)
        x, y = pivot_c * x - pivot_b * y, pivot_b * x + pivot_a * y
        g = tl.where(here, x, g - a * x - b * y)
        h = tl.where(here, y, h - d * x - c * y)
        i += 1
    while i > 0:
        i -= 1
        here, at = k == i, factor + i * K
        a, b = tl.load(at + k), tl.load(at + plane + k)
        d, c = tl.load(at + 2 * plane + k), tl.load(at + 3 * plane + k)
        pivot_a, pivot_b = tl.load(at + 4 * plane), tl.load(at + 4 * plane + 1)
        pivot_c = tl.load(at + 4 * plane + 2)
        x, y = tl.sum(a * g - d * h, 0), tl.sum(c * h - b * g, 0)
        g = tl.where(here, g - pivot_c * x + pivot_b * y, g)
        h = tl.where(here, h - pivot_b * x - pivot_a * y, h)
    return g, h
