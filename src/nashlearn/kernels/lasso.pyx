"""Steps of a quadratic model with absolute values, by coordinate descent:

    min_d  <g, d> + d' B d / 2 + alpha |w + d|_1,

for a matrix ``B`` (m, m) that is stored, or one that is a diagonal less a product of thin matrices. One coordinate after
another goes to its own minimum, by a threshold; between two passes over all of them there are some over those that are
not zero [friedman2010]_. Cost: O(m) for each coordinate that moves, or O(rank) for each one that is visited.
"""

from libc.math cimport fabs
from nashlearn.kernels.checks cimport DOUBLE, extent, matrix, vector, vector_out
from nashlearn.kernels.scratch cimport Scratch

cdef enum:
    _INNER = 10  # passes over what is not zero, between two over all


cdef inline double threshold(double x, double a) noexcept nogil:
    """The nearest to ``x`` of what is left once ``a`` is taken off its size."""
    return x - a if x > a else (x + a if x < -a else 0.0)


cdef double stored_pass(
    Py_ssize_t m, const double* B, const double* w, double alpha, double* d, double* slope, bint all_of_them
) noexcept nogil:
    """Visit the coordinates; the largest distance of a slope from what would let its coordinate stay."""
    cdef Py_ssize_t j, t
    cdef double now, new, move, most = 0.0
    cdef const double* row
    for j in range(m):
        row = B + j * m
        now = w[j] + d[j]
        if not row[j] > 0.0 or not (all_of_them or now != 0.0):
            continue
        new = threshold(now - slope[j] / row[j], alpha / row[j])
        move = new - now
        if move == 0.0:
            continue
        most = max(most, fabs(move) * row[j])
        d[j] = new - w[j]
        for t in range(m):
            slope[t] += move * row[t]
    return most


cdef double thin_pass(
    Py_ssize_t m, Py_ssize_t rank, const double* diagonal, const double* V, const double* U, const double* g,
    const double* w, double alpha, double* d, double* z, bint all_of_them
) noexcept nogil:
    """The same for ``B = diagonal - V U'``, with ``z = U' d``."""
    cdef Py_ssize_t j, t
    cdef double now, new, move, slope, own, most = 0.0
    for j in range(m):
        now = w[j] + d[j]
        if not (all_of_them or now != 0.0):
            continue
        slope, own = g[j] + diagonal[j] * d[j], diagonal[j]
        for t in range(rank):
            slope -= V[j * rank + t] * z[t]
            own -= V[j * rank + t] * U[j * rank + t]
        if not own > 0.0:
            continue
        new = threshold(now - slope / own, alpha / own)
        move = new - now
        if move == 0.0:
            continue
        most = max(most, fabs(move) * own)
        d[j] = new - w[j]
        for t in range(rank):
            z[t] += move * U[j * rank + t]
    return most


def stored_step(B, g, w, double alpha, d, double tol, Py_ssize_t passes):
    """Improve the step ``d`` (m,) for a symmetric matrix ``B``; the largest violation of the last full pass.

    Ends once that is at most ``tol``, or after so many full passes.
    """
    cdef Py_ssize_t m = extent(g, "g", 0), done, inner, j
    cdef const double* curvature = <const double*> matrix(B, "B", DOUBLE, m, m)
    cdef const double* gradient = <const double*> vector(g, "g", DOUBLE, m)
    cdef const double* at = <const double*> vector(w, "w", DOUBLE, m)
    cdef double* step = <double*> vector_out(d, "d", DOUBLE, m)
    cdef Scratch own = Scratch(m * sizeof(double))
    cdef double* slope = <double*> own.at
    cdef double most = 0.0
    with nogil:
        for j in range(m):
            slope[j] = gradient[j]
        for j in range(m):
            if step[j] != 0.0:
                for inner in range(m):
                    slope[inner] += step[j] * curvature[j * m + inner]
        for done in range(passes):
            most = stored_pass(m, curvature, at, alpha, step, slope, True)
            if most <= tol:
                break
            for inner in range(_INNER):
                if stored_pass(m, curvature, at, alpha, step, slope, False) <= 0.3 * tol:
                    break
    return most


def thin_step(diagonal, V, U, g, w, double alpha, d, double tol, Py_ssize_t passes):
    """Improve the step ``d`` (m,) for ``B = diag(diagonal) - V U'``, which is symmetric; as :func:`stored_step`."""
    cdef Py_ssize_t m = extent(g, "g", 0), rank = extent(V, "V", 1), done, inner, j
    cdef const double* main = <const double*> vector(diagonal, "diagonal", DOUBLE, m)
    cdef const double* left = <const double*> matrix(V, "V", DOUBLE, m, rank)
    cdef const double* right = <const double*> matrix(U, "U", DOUBLE, m, rank)
    cdef const double* gradient = <const double*> vector(g, "g", DOUBLE, m)
    cdef const double* at = <const double*> vector(w, "w", DOUBLE, m)
    cdef double* step = <double*> vector_out(d, "d", DOUBLE, m)
    cdef Scratch own = Scratch(rank * sizeof(double))
    cdef double* z = <double*> own.at
    cdef double most = 0.0
    with nogil:
        for inner in range(rank):
            z[inner] = 0.0
        for j in range(m):
            for inner in range(rank):
                z[inner] += step[j] * right[j * rank + inner]
        for done in range(passes):
            most = thin_pass(m, rank, main, left, right, gradient, at, alpha, step, z, True)
            if most <= tol:
                break
            for inner in range(_INNER):
                if thin_pass(m, rank, main, left, right, gradient, at, alpha, step, z, False) <= 0.3 * tol:
                    break
    return most
