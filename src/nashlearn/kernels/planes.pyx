"""The best mixture of planes below an objective, for the few dozen of them that training keeps."""

from libc.math cimport INFINITY, fabs
from nashlearn.kernels.checks cimport DOUBLE, extent, matrix, vector, vector_out
from nashlearn.kernels.scratch cimport Scratch

cdef enum:
    _ROUNDS = 4000  # a fraction of a millisecond


def best_mixture(offset, gram, x):
    """Move ``x`` to ``argmax <offset, x> - x' gram x / 2`` over the simplex, near enough.

    Moves mass between pairs of planes: to the one with the steepest slope, from the one whose move wins most, by its
    curvature [fan2005]_. Cost: O(planes) a move.
    """
    cdef Py_ssize_t s, t, rise, fall, n = extent(offset, "offset", 0), rounds
    cdef const double* height = <const double*> vector(offset, "offset", DOUBLE, n)
    cdef const double* G = <const double*> matrix(gram, "gram", DOUBLE, n, n)
    cdef double* mass = <double*> vector_out(x, "x", DOUBLE, n)
    cdef Scratch own = Scratch(n * sizeof(double))
    cdef double* slope = <double*> own.at
    cdef double lowest, most, gain, won, curvature, step, total
    if n == 0:
        return
    with nogil:
        for s in range(n):
            total = 0.0
            for t in range(n):
                total += G[s * n + t] * mass[t]
            slope[s] = height[s] - total
        for rounds in range(_ROUNDS):
            rise, fall, lowest, most = 0, 0, INFINITY, -1.0
            for t in range(n):
                if slope[t] > slope[rise]:
                    rise = t
            for t in range(n):
                if mass[t] > 0.0:
                    lowest = min(lowest, slope[t])
                    gain = slope[rise] - slope[t]
                    won = gain * gain / max(G[rise * n + rise] + G[t * n + t] - 2.0 * G[rise * n + t], 1e-300)
                    if gain > 0.0 and won > most:
                        fall, most = t, won
            if not slope[rise] - lowest > 1e-12 * (1.0 + fabs(slope[rise])):
                break
            gain = slope[rise] - slope[fall]
            curvature = G[rise * n + rise] + G[fall * n + fall] - 2.0 * G[rise * n + fall]
            step = min(mass[fall], gain / curvature) if curvature > 0.0 else mass[fall]
            mass[rise] += step
            mass[fall] = mass[fall] - step if step < mass[fall] else 0.0
            for t in range(n):
                slope[t] -= step * (G[rise * n + t] - G[fall * n + t])
