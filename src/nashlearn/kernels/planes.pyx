"""The best mixture of planes below an objective, for the few dozen of them that training keeps.

    argmax <offset, x> - x' G x / 2   over the simplex,

near enough, by moves of mass between two planes: to the one with the steepest slope, from the one whose move wins most,
by its curvature [fan2005]_. Cost: O(planes) a move.
"""

from libc.math cimport INFINITY, fabs
from nashlearn.kernels.checks cimport DOUBLE, extent, matrix, vector, vector_out
from nashlearn.kernels.scratch cimport Scratch

cdef enum:
    _ROUNDS = 4000  # a fraction of a millisecond


cdef void mix(const double* offset, const double* G, Py_ssize_t n, double* x, double* slope) noexcept nogil:
    cdef Py_ssize_t s, t, rise, fall, rounds
    cdef double lowest, most, gain, won, curvature, step, total
    for s in range(n):
        total = 0.0
        for t in range(n):
            total += G[s * n + t] * x[t]
        slope[s] = offset[s] - total
    for rounds in range(_ROUNDS if n > 0 else 0):
        rise, fall, lowest, most = 0, 0, INFINITY, -1.0
        for t in range(n):
            if slope[t] > slope[rise]:
                rise = t
        for t in range(n):
            if x[t] > 0.0:
                lowest = min(lowest, slope[t])
                gain = slope[rise] - slope[t]
                won = gain * gain / max(G[rise * n + rise] + G[t * n + t] - 2.0 * G[rise * n + t], 1e-300)
                if gain > 0.0 and won > most:
                    fall, most = t, won
        if not slope[rise] - lowest > 1e-12 * (1.0 + fabs(slope[rise])):
            break
        gain = slope[rise] - slope[fall]
        curvature = G[rise * n + rise] + G[fall * n + fall] - 2.0 * G[rise * n + fall]
        step = min(x[fall], gain / curvature) if curvature > 0.0 else x[fall]
        x[rise] += step
        x[fall] = x[fall] - step if step < x[fall] else 0.0
        for t in range(n):
            slope[t] -= step * (G[rise * n + t] - G[fall * n + t])


def best_mixture(offset, gram, x):
    """Move ``x`` to ``argmax <offset, x> - x' gram x / 2`` over the simplex, near enough."""
    cdef Py_ssize_t n = extent(offset, "offset", 0)
    cdef const double* height = <const double*> vector(offset, "offset", DOUBLE, n)
    cdef const double* G = <const double*> matrix(gram, "gram", DOUBLE, n, n)
    cdef double* mass = <double*> vector_out(x, "x", DOUBLE, n)
    cdef Scratch own = Scratch(n * sizeof(double))
    with nogil:
        mix(height, G, n, mass, <double*> own.at)
