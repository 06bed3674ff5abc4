"""The loops of ``doubly_stochastic``: alternating projections of rows and columns."""

from libc.string cimport memset
from nashlearn.kernels.checks cimport DOUBLE, cube, cube_out, extent, matrix, matrix_out
from nashlearn.kernels.scratch cimport Scratch, doubles
from nashlearn.kernels.simd cimport simd_excess, simd_max, simd_threshold


cdef struct Desk:  # what the steps for a matrix of n rows work on
    double* T  # (n, n), the transpose of S: columns are then rows in memory
    double* W  # (n, n)
    double* row  # (n), as the next
    double* projected


cdef size_t _lay(Desk* s, Py_ssize_t n, size_t at) noexcept nogil:
    s.T, s.W = doubles(&at, n * n), doubles(&at, n * n)
    s.row, s.projected = doubles(&at, n), doubles(&at, n)
    return at


cdef void _project_row(const double* x, Py_ssize_t n, double* out) noexcept nogil:
    cdef double top = simd_max(x, n, x[0])
    simd_excess(x, n, top, simd_threshold(x, n, top, 1.0), out)


cdef Py_ssize_t _admm(
    const double* R, Py_ssize_t n, double rho, double tol, Py_ssize_t max_iter, double* P, const Desk* s
) noexcept nogil:
    """The projection of ``R`` into ``P``; the iterations taken."""
    cdef Py_ssize_t i, j, iteration
    cdef double primal, dual, change, apart
    cdef double* T = s.T
    cdef double* W = s.W
    memset(W, 0, n * n * sizeof(double))
    for i in range(n):
        _project_row(R + i * n, n, P + i * n)
    for j in range(n):
        for i in range(n):
            T[j * n + i] = P[i * n + j]
    for iteration in range(1, max_iter + 1):
        for i in range(n):
            for j in range(n):
                s.row[j] = (R[i * n + j] + rho * (T[j * n + i] - W[i * n + j])) / (1.0 + rho)
            _project_row(s.row, n, P + i * n)
        primal = dual = 0.0
        for j in range(n):
            for i in range(n):
                s.row[i] = (R[i * n + j] + rho * (P[i * n + j] + W[i * n + j])) / (1.0 + rho)
            _project_row(s.row, n, s.projected)
            for i in range(n):
                change, apart = rho * (s.projected[i] - T[j * n + i]), P[i * n + j] - s.projected[i]
                dual += change * change
                primal += apart * apart
                T[j * n + i] = s.projected[i]
                W[i * n + j] += apart
        if max(primal, dual) <= (tol * n) * (tol * n):
            return iteration
    return max_iter


def admm(R, double rho, double tol, Py_ssize_t max_iter, P):
    """The projection of ``R`` (n, n) into ``P``; the iterations taken."""
    cdef Py_ssize_t taken, n = extent(R, "R", 0)
    cdef const double* scores = <const double*> matrix(R, "R", DOUBLE, n, n)
    cdef double* out = <double*> matrix_out(P, "P", DOUBLE, n, n)
    cdef Desk s
    cdef Scratch memory = Scratch(_lay(&s, n, 0))
    _lay(&s, n, <size_t> memory.at)
    with nogil:
        taken = _admm(scores, n, rho, tol, max_iter, out, &s)
    return taken


def admm_each(R, double rho, double tol, Py_ssize_t max_iter, P):
    """The projections of all matrices of ``R`` (b, n, n) into ``P``."""
    cdef Py_ssize_t b, count = extent(R, "R", 0), n = extent(R, "R", 1)
    cdef const double* scores = <const double*> cube(R, "R", DOUBLE, count, n, n)
    cdef double* out = <double*> cube_out(P, "P", DOUBLE, count, n, n)
    cdef Desk s
    cdef Scratch memory = Scratch(_lay(&s, n, 0))
    _lay(&s, n, <size_t> memory.at)
    with nogil:
        for b in range(count):
            _admm(scores + b * n * n, n, rho, tol, max_iter, out + b * n * n, &s)
