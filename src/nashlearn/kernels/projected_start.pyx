"""An equilibrium of complete matchings guessed from the projection of the scores, often exact for small scores.

The projection ``p`` of the scores makes every pair of its support ``S``, and no other, a best reply. The adversary's
``q = a_i + b_j`` on ``S`` with rows and columns that sum to 1 makes ``p`` a best answer if ``a_i + b_j >= 0`` for all
pairs, on ``S`` and off it: then both are an equilibrium of the Hamming loss. One linear system, the last of the
projection, finds ``a`` and ``b``. Where the condition fails, the pair is a good start.
"""

from nashlearn.kernels.assignment cimport Sides, sides_of
from nashlearn.kernels.birkhoff cimport birkhoff_room, newton_step, project_matching
from nashlearn.kernels.scratch cimport doubles


cdef struct Room:
    double* v  # (n), as the other two
    double* a
    double* b
    void* rest  # for the projection


cdef Room _laid_out(Py_ssize_t n, size_t* at) noexcept nogil:
    cdef Room c
    c.v, c.a, c.b = doubles(at, n), doubles(at, n), doubles(at, n)
    c.rest = <void*> at[0]
    return c


cdef size_t start_room(Py_ssize_t n) noexcept nogil:
    cdef size_t at = 0
    cdef Sides sides = sides_of(n, n, False)
    _laid_out(n, &at)
    return at + birkhoff_room(&sides)


cdef bint projected_start(
    Py_ssize_t n, const double* scores, double* x, double* y, double* lam, void* room
) noexcept nogil:
    cdef size_t at = <size_t> room
    cdef Room c = _laid_out(n, &at)
    cdef Sides sides = sides_of(n, n, False)
    cdef Py_ssize_t i, j
    cdef double size, total, least = 0.0
    cdef double* p = x
    cdef double* q = x + n * n
    for j in range(n):
        c.v[j], c.b[j] = 0.0, 1.0
    project_matching(&sides, scores, 1e-12, c.v, p, c.rest)
    for i in range(n):
        size = total = 0.0
        for j in range(n):
            if p[i * n + j] > 0.0:
                size += 1.0
                total += scores[i * n + j] - c.v[j] - p[i * n + j]
        y[n + i] = -1.0 - total / size - c.v[n - 1]
        for j in range(n):
            if p[i * n + j] > 0.0:
                c.b[j] -= 1.0 / size
    newton_step(&sides, p, 1e-11, c.b, c.rest)
    for i in range(n):
        size, total = 0.0, 1.0
        for j in range(n):
            if p[i * n + j] > 0.0:
                size += 1.0
                total -= c.b[j]
        c.a[i] = total / size
        y[i] = -c.a[i] - c.b[n - 1]
    for j in range(n - 1):
        lam[j], lam[n - 1 + j] = c.b[n - 1] - c.b[j], c.v[n - 1] - c.v[j]
    for i in range(n):
        for j in range(n):
            least = min(least, c.a[i] + c.b[j])
            q[i * n + j] = max(c.a[i] + c.b[j], 0.0) if p[i * n + j] > 0.0 else 0.0
    return least > -1e-10
