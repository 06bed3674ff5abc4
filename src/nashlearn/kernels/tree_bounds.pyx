"""Bounds of the value of a game over arborescences, by the best trees against both strategies."""

from libc.math cimport INFINITY, fabs
from nashlearn.kernels.tree_entries cimport Stage
from nashlearn.kernels.tree_inside cimport into_polytope
from nashlearn.kernels.tree_map cimport best_tree


cdef void _secure(Stage* s, const double* q, Bounds* bounds) noexcept nogil:
    """What ``q`` secures, its part without the scores (the entropy), and of that the risk ``min_p <p, L q>``."""
    cdef Py_ssize_t d, j, a, n = s.n, L = s.labels
    cdef double worth = 0.0, spread = 0.0, risk = 0.0, best, price
    for d in range(n):
        price = s.price[d]
        risk += price
        for a in range(d * (n + 1), (d + 1) * (n + 1)):
            best = -INFINITY
            for j in range(a * L, (a + 1) * L):
                if q[j] != 0.0:
                    worth += s.theta[j] * q[j]
                    spread += q[j] * (1.0 - q[j])
                if s.theta[j] > -INFINITY and price * q[j] > best:
                    best = price * q[j]
            s.other[a] = best
    best_tree(s.other, n, s.single_root, s.heads, &s.work)
    for d in range(n):
        risk -= s.other[d * (n + 1) + s.heads[d]]
    bounds.risk = risk
    bounds.entropy = risk + 0.5 * s.mu * spread
    bounds.lower = worth + bounds.entropy


cdef double concede(Stage* s, const double* p, const double* q, double* arc) noexcept nogil:
    cdef Py_ssize_t d, j, a, n = s.n, L = s.labels
    cdef double upper = 0.0, best, x
    for d in range(n):
        upper += s.price[d]
        for a in range(d * (n + 1), (d + 1) * (n + 1)):
            best = -INFINITY
            for j in range(a * L, (a + 1) * L):
                x = q[j]
                best = max(best, s.theta[j] - s.price[d] * p[j] - s.mu * (x - 0.5))
                upper += 0.5 * s.mu * x * x
            arc[a] = best
    best_tree(arc, n, s.single_root, s.heads, &s.work)
    for d in range(n):
        upper += arc[d * (n + 1) + s.heads[d]]
    return upper


cdef Bounds certify_strategies(Stage* s, const double* p, const double* q) noexcept nogil:
    cdef Bounds bounds
    bounds.upper = concede(s, p, q, s.arc)
    _secure(s, q, &bounds)
    return bounds


cdef Bounds certify_inside(Stage* s, double* p, double* q) noexcept nogil:
    into_polytope(q, s.n, s.single_root, s.cuts.members, &s.flow)
    into_polytope(p, s.n, s.single_root, s.cuts.members, &s.flow)
    return certify_strategies(s, p, q)


cdef void scale_rows(double* x, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t d, h
    cdef double total
    for d in range(n):
        total = 0.0
        for h in range(n + 1):
            total += x[d * (n + 1) + h]
        if total > 0.0:
            for h in range(n + 1):
                x[d * (n + 1) + h] /= total


cdef bint whole(const double* x, Py_ssize_t rows, Py_ssize_t size) noexcept nogil:
    cdef Py_ssize_t d, a
    cdef double total
    for d in range(rows):
        total = 0.0
        for a in range(size):
            total += x[d * size + a]
        if not fabs(total - 1.0) <= 1e-6:
            return False
    return True
