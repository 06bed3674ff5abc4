"""Offsets of scores that all trees share: every token has one head, and a single root has one arc.

Adding ``a_d`` to all scores of token ``d`` adds ``a_d`` to the score of every tree, and so does adding a number to all
arcs from a single root. Games are solved without such offsets: beside large ones the losses would drown in rounding.
"""

from libc.math cimport INFINITY
from nashlearn.kernels.checks cimport DOUBLE, cube, cube_out, extent


cdef double shift(const double* theta, Py_ssize_t n, Py_ssize_t labels, bint single_root, double* out) noexcept nogil:
    cdef Py_ssize_t d, h, j, width = (n + 1) * labels
    cdef double top, offset = 0.0
    cdef const double* row
    for d in range(n):
        row, top = theta + d * width, -INFINITY
        for h in range(1 if single_root else 0, n + 1):
            if h != d + 1:
                for j in range(h * labels, (h + 1) * labels):
                    top = max(top, row[j])
        if top == -INFINITY:
            for j in range(labels):
                top = max(top, row[j])
        if top == -INFINITY:
            top = 0.0
        offset += top
        for j in range(width):
            out[d * width + j] = row[j] - top
        for j in range((d + 1) * labels, (d + 2) * labels):
            out[d * width + j] = -INFINITY
    top = -INFINITY
    if single_root:
        for d in range(n):
            for j in range(labels):
                top = max(top, out[d * width + j])
    if top > -INFINITY:
        for d in range(n):
            for j in range(labels):
                out[d * width + j] -= top
        offset += top
    return offset


def shifted(theta, bint single_root, out):
    """Scores (n, n + 1, labels) less the offsets that all trees share, into ``out``; what a tree loses by that. O(n²).

    The best head of a token gets 0 (the best token where the root is single); then the best arc from a single root.
    """
    cdef Py_ssize_t n = extent(theta, "theta", 0), labels = extent(theta, "theta", 2)
    cdef const double* scores = <const double*> cube(theta, "theta", DOUBLE, n, n + 1, labels)
    cdef double* rest = <double*> cube_out(out, "out", DOUBLE, n, n + 1, labels)
    cdef double offset
    with nogil:
        offset = shift(scores, n, labels, single_root, rest)
    return offset
