"""The loops of ``thesis``: a row of scores (n, k) at a time, its value into ``value`` and the adversary's strategy
into ``q``, which begins as zeros.
"""

from libc.math cimport INFINITY
from nashlearn.kernels.checks cimport DOUBLE, INDEX, extent, matrix, matrix_out, vector_out


cdef void _zero_one(const double* f, const Py_ssize_t* order, Py_ssize_t k, double* value, double* q) noexcept nogil:
    cdef Py_ssize_t s, size = 0
    cdef double total = 0.0, best = -INFINITY, candidate
    for s in range(k):
        total += f[order[s]]
        candidate = (total + s) / (s + 1)
        if candidate <= best:
            break
        best, size = candidate, s + 1
    value[0] = best
    for s in range(size):
        q[order[s]] = 1.0 / size


cdef void _absolute(const double* f, Py_ssize_t k, double* value, double* q) noexcept nogil:
    cdef Py_ssize_t j, at_low = 0, at_high = 0
    cdef double low = -INFINITY, high = -INFINITY
    for j in range(k):
        if f[j] - j > low:
            low, at_low = f[j] - j, j
        if f[j] + j > high:
            high, at_high = f[j] + j, j
    value[0] = 0.5 * (low + high)
    q[at_low] += 0.5
    q[at_high] += 0.5


cdef void _squared(const double* f, Py_ssize_t k, double* value, double* q) noexcept nogil:
    cdef Py_ssize_t i, j, m, at_i = 0, at_j, at_m = 0
    cdef double best, weight = 1.0, w, candidate, span, left, right
    for j in range(1, k):
        if f[j] > f[at_i]:
            at_i = j
    at_j, best = at_i, f[at_i]
    for i in range(k):
        for j in range(i + 1, k):
            span = 2 * (j - i)
            for m in range(i + 1, j + 1):
                left, right = m - i, j - m
                w = (2.0 * right + 1.0) / span
                candidate = w * (f[i] + left * left) + (1.0 - w) * (f[j] + right * right)
                if candidate > best:
                    best, at_i, at_j, at_m = candidate, i, j, m
    if at_j > at_i:
        weight = (2.0 * (at_j - at_m) + 1.0) / (2.0 * (at_j - at_i))
    value[0] = best
    q[at_i] += weight
    q[at_j] += 1.0 - weight


cdef void _abstain(const double* f, Py_ssize_t k, double cost, double* value, double* q) noexcept nogil:
    cdef Py_ssize_t j, first = 0, second = 1
    cdef double best = f[0], next_best = f[1], mixed
    cdef bint alone
    if next_best > best:
        first, second, best, next_best = 1, 0, next_best, best
    for j in range(2, k):
        if f[j] > next_best:
            if f[j] > best:
                first, second, best, next_best = j, first, f[j], best
            else:
                second, next_best = j, f[j]
    mixed = (1.0 - cost) * best + cost * next_best + cost
    alone = best >= mixed
    value[0] = best if alone else mixed
    q[first] = 1.0 if alone else 1.0 - cost
    q[second] = 0.0 if alone else cost


def zero_one(scores, order, value, q):
    """AL0-1, where ``order`` (n, k) holds the labels of each row from its largest score to its smallest."""
    cdef Py_ssize_t i, n = extent(scores, "scores", 0), k = extent(scores, "scores", 1)
    cdef const double* f = <const double*> matrix(scores, "scores", DOUBLE, n, k)
    cdef const Py_ssize_t* labels = <const Py_ssize_t*> matrix(order, "order", INDEX, n, k)
    cdef double* v = <double*> vector_out(value, "value", DOUBLE, n)
    cdef double* p = <double*> matrix_out(q, "q", DOUBLE, n, k)
    with nogil:
        for i in range(n):
            _zero_one(f + i * k, labels + i * k, k, v + i, p + i * k)


def absolute(scores, value, q):
    """AL-ord."""
    cdef Py_ssize_t i, n = extent(scores, "scores", 0), k = extent(scores, "scores", 1)
    cdef const double* f = <const double*> matrix(scores, "scores", DOUBLE, n, k)
    cdef double* v = <double*> vector_out(value, "value", DOUBLE, n)
    cdef double* p = <double*> matrix_out(q, "q", DOUBLE, n, k)
    with nogil:
        for i in range(n):
            _absolute(f + i * k, k, v + i, p + i * k)


def squared(scores, value, q):
    """AL-sq."""
    cdef Py_ssize_t i, n = extent(scores, "scores", 0), k = extent(scores, "scores", 1)
    cdef const double* f = <const double*> matrix(scores, "scores", DOUBLE, n, k)
    cdef double* v = <double*> vector_out(value, "value", DOUBLE, n)
    cdef double* p = <double*> matrix_out(q, "q", DOUBLE, n, k)
    with nogil:
        for i in range(n):
            _squared(f + i * k, k, v + i, p + i * k)


def abstain(scores, double cost, value, q):
    """AL-abstain, for two labels or more."""
    cdef Py_ssize_t i, n = extent(scores, "scores", 0), k = extent(scores, "scores", 1)
    cdef const double* f = <const double*> matrix(scores, "scores", DOUBLE, n, k)
    cdef double* v = <double*> vector_out(value, "value", DOUBLE, n)
    cdef double* p = <double*> matrix_out(q, "q", DOUBLE, n, k)
    if k < 2:
        raise ValueError(f"there must be two labels or more; got {k}")
    with nogil:
        for i in range(n):
            _abstain(f + i * k, k, cost, v + i, p + i * k)
