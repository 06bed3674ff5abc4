"""Tangents of the proximal steps of many rows: whole, by their diagonals, and as directions.

Symmetric matrices (k, k) of many rows are packed as their lower triangles: entry ``(c, e)``, ``e <= c``, of the row in
column ``i`` is ``packed[c (c + 1) / 2 + e, i]``.
"""

from libc.math cimport sqrt
from libc.string cimport memset
from nashlearn.kernels.checks cimport DOUBLE, INDEX, MARK, extent, matrix, matrix_out, vector, vector_out, within
from nashlearn.kernels.loss cimport Loss
from nashlearn.kernels.scratch cimport Scratch


def packed_tangents(Loss loss not None, double mu, omega, Q, tight, rows, packed, active):
    """Lower triangles of ``omega_i J_i`` of those ``rows`` that have a tangent, and which they are; how many.

    The first columns of ``packed`` and the first entries of ``active`` are written. Cost: a tangent of the loss a row.
    """
    cdef Py_ssize_t e, i, c, b, m = 0, k = loss.k, n = extent(Q, "Q", 0), size = extent(rows, "rows", 0)
    cdef Py_ssize_t width = extent(packed, "packed", 1)
    cdef const double* share = <const double*> vector(omega, "omega", DOUBLE, n)
    cdef const double* q = <const double*> matrix(Q, "Q", DOUBLE, n, k)
    cdef const unsigned char* marks = <const unsigned char*> matrix(tight, "tight", MARK, n, loss.options)
    cdef const Py_ssize_t* some = <const Py_ssize_t*> vector(rows, "rows", INDEX, size)
    cdef double* out = <double*> matrix_out(packed, "packed", DOUBLE, k * (k + 1) // 2, width)
    cdef Py_ssize_t* found = <Py_ssize_t*> vector_out(active, "active", INDEX, -1)
    cdef Scratch room = Scratch(loss.room_size())
    cdef Scratch own = Scratch(k * k * sizeof(double))
    cdef double* J = <double*> own.at
    within(some, size, n, "rows")
    if size > width or size > extent(active, "active", 0):
        raise ValueError(f"packed and active must have room for {size} rows")
    loss = loss.own(n)
    with nogil:
        for e in range(size):
            i = some[e]
            loss.at(i)
            if loss.tangent(mu, q + i * k, marks + i * loss.options, J, room.at) > 0:
                for c in range(k):
                    for b in range(c + 1):
                        out[(c * (c + 1) // 2 + b) * width + m] = share[i] * J[c * k + b]
                found[m] = i
                m += 1
    return m


def tangent_diagonals(Loss loss not None, double mu, omega, Q, tight, rows, out):
    """Diagonals of ``omega_i J_i`` of these ``rows``, a column each, into ``out`` (k, rows); 0 where there is no tangent.

    Cost: a tangent of the loss a row.
    """
    cdef Py_ssize_t e, i, c, k = loss.k, n = extent(Q, "Q", 0), size = extent(rows, "rows", 0)
    cdef const double* share = <const double*> vector(omega, "omega", DOUBLE, n)
    cdef const double* q = <const double*> matrix(Q, "Q", DOUBLE, n, k)
    cdef const unsigned char* marks = <const unsigned char*> matrix(tight, "tight", MARK, n, loss.options)
    cdef const Py_ssize_t* some = <const Py_ssize_t*> vector(rows, "rows", INDEX, size)
    cdef double* diagonal = <double*> matrix_out(out, "out", DOUBLE, k, size)
    cdef Scratch room = Scratch(loss.room_size())
    cdef Scratch own = Scratch(k * k * sizeof(double))
    cdef double* J = <double*> own.at
    within(some, size, n, "rows")
    loss = loss.own(n)
    with nogil:
        memset(diagonal, 0, k * size * sizeof(double))
        for e in range(size):
            i = some[e]
            loss.at(i)
            if loss.tangent(mu, q + i * k, marks + i * loss.options, J, room.at) > 0:
                for c in range(k):
                    diagonal[c * size + e] = share[i] * J[c * k + c]


cdef Py_ssize_t _factor(double* J, Py_ssize_t k, double least, double scale, double* U) noexcept nogil:
    """Rows ``u_a`` of ``U`` with ``J = sum_a u_a u_a'``, times ``scale``, by pivoted Cholesky; how many."""
    cdef Py_ssize_t a, c, e, pivot
    cdef double root
    for a in range(k):
        pivot = 0
        for c in range(1, k):
            if J[c * k + c] > J[pivot * k + pivot]:
                pivot = c
        if J[pivot * k + pivot] <= least:
            return a
        root = sqrt(J[pivot * k + pivot])
        for c in range(k):
            U[a * k + c] = J[c * k + pivot] / root
        for c in range(k):
            for e in range(k):
                J[c * k + e] -= U[a * k + c] * U[a * k + e]
        for c in range(k):
            U[a * k + c] *= scale
    return k


def directions(Loss loss not None, double mu, omega, Q, tight, U, owner):
    """Factor each example's tangent, ``omega_i J_i = sum_a U_a U_a'``, and note whose each row is; how many rows.

    ``U`` (n k, k) and ``owner`` (n k,) have room for as many as there may be.
    """
    cdef Py_ssize_t i, a, m = 0, more, k = loss.k, n = extent(Q, "Q", 0)
    cdef const double* share = <const double*> vector(omega, "omega", DOUBLE, n)
    cdef const double* q = <const double*> matrix(Q, "Q", DOUBLE, n, k)
    cdef const unsigned char* marks = <const unsigned char*> matrix(tight, "tight", MARK, n, loss.options)
    cdef double* out = <double*> matrix_out(U, "U", DOUBLE, n * k, k)
    cdef Py_ssize_t* whose = <Py_ssize_t*> vector_out(owner, "owner", INDEX, n * k)
    cdef Scratch room = Scratch(loss.room_size())
    cdef Scratch own = Scratch(k * k * sizeof(double))
    cdef double* J = <double*> own.at
    loss = loss.own(n)
    with nogil:
        for i in range(n):
            loss.at(i)
            if loss.tangent(mu, q + i * k, marks + i * loss.options, J, room.at) == 0:
                continue
            more = _factor(J, k, 1e-9 / mu, sqrt(share[i]), out + m * k)
            for a in range(more):
                whose[m + a] = i
            m += more
    return m


def combine(U, owner, z, out):
    """``U' z``: the combination of directions (m, k), each in the scores of its owner, into ``out`` (examples, k)."""
    cdef Py_ssize_t a, c, m = extent(U, "U", 0), k = extent(U, "U", 1), n = extent(out, "out", 0)
    cdef const double* u = <const double*> matrix(U, "U", DOUBLE, m, k)
    cdef const Py_ssize_t* whose = <const Py_ssize_t*> vector(owner, "owner", INDEX, m)
    cdef const double* weight = <const double*> vector(z, "z", DOUBLE, m)
    cdef double* total = <double*> matrix_out(out, "out", DOUBLE, n, k)
    within(whose, m, n, "owner")
    with nogil:
        memset(total, 0, n * k * sizeof(double))
        for a in range(m):
            for c in range(k):
                total[whose[a] * k + c] += u[a * k + c] * weight[a]
