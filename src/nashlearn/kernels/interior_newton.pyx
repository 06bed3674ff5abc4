"""Newton's step of the interior point method for games over rows and constraints, by elimination.

The unknowns of an entry, its ``p`` and its ``q``, couple through the loss only: a 2 x 2 block [[a, -w], [w, b]].
Entries are eliminated first, then rows, whose blocks have the same form; the constraints' dense system is factored
once for the predictor and the corrector.
"""

from libc.string cimport memset
from nashlearn.kernels.blas cimport gemm
from nashlearn.kernels.dense cimport lu_factor, lu_solve
from nashlearn.kernels.scratch cimport doubles, indices


cdef Point new_point(Py_ssize_t m, Py_ssize_t R, Py_ssize_t K, size_t* at) noexcept nogil:
    cdef Point c
    c.x, c.z, c.y = doubles(at, 2 * m), doubles(at, 2 * m), doubles(at, 2 * R)
    c.lam, c.s = doubles(at, 2 * K), doubles(at, 2 * K)
    return c


cdef System new_system(Py_ssize_t m, Py_ssize_t R, Py_ssize_t K, size_t* at) noexcept nogil:
    cdef System c
    c.inverse, c.entry, c.row = doubles(at, 2 * m), doubles(at, 3 * m), doubles(at, 3 * R)
    c.coupling, c.through = doubles(at, 4 * K * R), doubles(at, 4 * R * K)
    c.product, c.schur = doubles(at, 4 * K * K), doubles(at, 4 * K * K)
    c.right, c.paid = doubles(at, 2 * K), doubles(at, 2 * R)
    c.pivot = indices(at, 2 * K)
    return c


cdef void sums(const Saddle* game, const double* x, double* rows, double* constraints) noexcept nogil:
    cdef Py_ssize_t e, i, t, k, m = game.m, R = game.R, K = game.K
    memset(rows, 0, 2 * R * sizeof(double))
    memset(constraints, 0, 2 * K * sizeof(double))
    for e in range(m):
        i = game.row[e]
        if i >= 0:
            rows[i] += x[e]
            rows[R + i] += x[m + e]
        for t in range(game.first[e], game.first[e + 1]):
            k = game.member[t]
            constraints[k] += x[e]
            constraints[K + k] += x[m + e]


cdef void _eliminate_entries(const Saddle* game, const Point* at, System* system) noexcept nogil:
    """Invert the entries' blocks and add them up to those of rows, constraints and what couples these."""
    cdef Py_ssize_t e, i, t, other, k, c, m = game.m, R = game.R, K = game.K
    cdef double a, b, u, w, v, scale
    cdef double* row = system.row
    cdef double* upper
    cdef double* lower
    memset(row, 0, 3 * R * sizeof(double))
    memset(system.coupling, 0, 4 * K * R * sizeof(double))
    memset(system.schur, 0, 4 * K * K * sizeof(double))
    for e in range(m):
        system.inverse[e], system.inverse[m + e] = 1.0 / at.x[e], 1.0 / at.x[m + e]
        a = game.mu_p + at.z[e] * system.inverse[e]
        b = game.mu_q + at.z[m + e] * system.inverse[m + e]
        w = game.weight[e]
        scale = 1.0 / (a * b + w * w)
        u, w, v = b * scale, w * scale, a * scale
        system.entry[e], system.entry[m + e], system.entry[2 * m + e] = u, w, v
        i = game.row[e]
        if i >= 0:
            row[i] += u
            row[R + i] += w
            row[2 * R + i] += v
        for t in range(game.first[e], game.first[e + 1]):
            k = game.member[t]
            if i >= 0:
                upper, lower = system.coupling + 2 * R * k + i, system.coupling + 2 * R * (K + k) + i
                upper[0] += u
                upper[R] += w
                lower[0] -= w
                lower[R] += v
            upper, lower = system.schur + 2 * K * k, system.schur + 2 * K * (K + k)
            for other in range(game.first[e], game.first[e + 1]):
                c = game.member[other]
                upper[c] += u
                upper[K + c] += w
                lower[c] -= w
                lower[K + c] += v


cdef void _eliminate_rows(const Saddle* game, System* system) noexcept nogil:
    """Invert the rows' blocks and take what goes through them off the constraints' system."""
    cdef Py_ssize_t i, k, R = game.R, K = game.K
    cdef double a, b, c, u, w, v, scale
    cdef double* row = system.row
    cdef const double* coupling
    cdef double* through
    for i in range(R):
        a, b, c = row[i], row[R + i], row[2 * R + i]
        scale = 1.0 / (a * c + b * b)
        row[i], row[R + i], row[2 * R + i] = c * scale, -b * scale, a * scale
    # Rows by constraints is the transpose with the signs of w changed; times the inverse blocks of the rows.
    for i in range(R):
        a, b, c = row[i], row[R + i], row[2 * R + i]
        through = system.through + 2 * K * i
        for k in range(K):
            coupling = system.coupling + 2 * R * k + i
            u, w, v = coupling[0], coupling[R], coupling[2 * R * K + R]
            through[k] = a * u - b * w
            through[K + k] = a * w + b * v
            through[2 * K * R + k] = -b * u - c * w
            through[2 * K * R + K + k] = -b * w + c * v
    # Near a vertex the difference below is all rounding: as much again keeps the system regular and its step small.
    for k in range(2 * K):
        system.schur[(2 * K + 1) * k] *= 1.0 + 1e-15
    gemm(
        False, False, 2 * K, 2 * K, 2 * R,
        1.0, system.coupling, 2 * R, system.through, 2 * K, 0.0, system.product, 2 * K
    )
    for k in range(4 * K * K):
        system.schur[k] -= system.product[k]


cdef bint factor(const Saddle* game, const Point* at, System* system) noexcept nogil:
    cdef Py_ssize_t k, K = game.K
    _eliminate_entries(game, at, system)
    _eliminate_rows(game, system)
    for k in range(K):
        if not game.equality[k]:
            system.schur[(2 * K + 1) * k] += at.s[k] / at.lam[k]
            system.schur[(2 * K + 1) * (K + k)] += at.s[K + k] / at.lam[K + k]
    return lu_factor(system.schur, 2 * K, 2 * K, system.pivot)


cdef void direction(
    const Saddle* game, const Point* at, const Point* lack, System* system, Point* step
) noexcept nogil:
    cdef Py_ssize_t e, i, m = game.m, R = game.R
    cdef double g, h
    # Entries: h = D^-1 (complementarity / x - stationarity), and what rows and constraints then miss.
    for e in range(m):
        g = lack.z[e] * system.inverse[e] - lack.x[e]
        h = lack.z[m + e] * system.inverse[m + e] - lack.x[m + e]
        step.x[e] = system.entry[e] * g + system.entry[m + e] * h
        step.x[m + e] = -system.entry[m + e] * g + system.entry[2 * m + e] * h
    sums(game, step.x, step.y, step.lam)
    for i in range(R):
        g, h = -lack.y[i] - step.y[i], -lack.y[R + i] - step.y[R + i]
        step.y[i] = system.row[i] * g + system.row[R + i] * h
        step.y[R + i] = -system.row[R + i] * g + system.row[2 * R + i] * h
    _constraints(game, at, lack, system, step)
    _entries(game, at, lack, system, step)


cdef void _constraints(
    const Saddle* game, const Point* at, const Point* lack, System* system, Point* step
) noexcept nogil:
    """Solve the constraints' system and take what they pay back to the rows."""
    cdef Py_ssize_t i, k, R = game.R, K = game.K
    cdef double g, h, u, w, v
    cdef const double* coupling
    cdef double* right = system.right
    cdef double* paid = system.paid
    for k in range(2 * K):
        right[k] = -lack.lam[k] - step.lam[k]
        if not game.equality[k % K]:
            right[k] += lack.s[k] / at.lam[k]
        coupling = system.coupling + 2 * R * k
        for i in range(R):
            right[k] -= coupling[i] * step.y[i] + coupling[R + i] * step.y[R + i]
    lu_solve(system.schur, 2 * K, 2 * K, system.pivot, right)
    memset(paid, 0, 2 * R * sizeof(double))
    for k in range(K):
        g, h = right[k], right[K + k]
        step.lam[k], step.lam[K + k] = g, h
        coupling = system.coupling + 2 * R * k
        for i in range(R):
            u, w, v = coupling[i], coupling[R + i], coupling[2 * R * K + R + i]
            paid[i] += u * g + w * h
            paid[R + i] += -w * g + v * h
    for i in range(R):
        step.y[i] -= system.row[i] * paid[i] + system.row[R + i] * paid[R + i]
        step.y[R + i] -= -system.row[R + i] * paid[i] + system.row[2 * R + i] * paid[R + i]


cdef void _entries(
    const Saddle* game, const Point* at, const Point* lack, System* system, Point* step
) noexcept nogil:
    """Back from rows and constraints to the entries, to multipliers and slacks."""
    cdef Py_ssize_t e, i, t, k, m = game.m, R = game.R, K = game.K
    cdef double g, h
    for e in range(m):
        g = h = 0.0
        i = game.row[e]
        if i >= 0:
            g, h = step.y[i], step.y[R + i]
        for t in range(game.first[e], game.first[e + 1]):
            k = game.member[t]
            g += step.lam[k]
            h += step.lam[K + k]
        step.x[e] += system.entry[e] * g + system.entry[m + e] * h
        step.x[m + e] += -system.entry[m + e] * g + system.entry[2 * m + e] * h
    for e in range(2 * m):
        step.z[e] = (lack.z[e] - at.z[e] * step.x[e]) * system.inverse[e]
    for k in range(2 * K):
        if not game.equality[k % K]:
            step.s[k] = (lack.s[k] - at.s[k] * step.lam[k]) / at.lam[k]
