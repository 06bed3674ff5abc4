"""Euclidean projection onto the matchings' polytope, by a semismooth Newton method on its columns' potentials.

The projection of ``r`` is ``x = (r - u_i - v_j)_+`` with potentials for which rows and columns sum to 1. Given
``v``, each ``u_i`` is a simplex threshold; what remains is the smooth convex function of ``v``

    min_u 1/2 |(r - u - v)_+|^2 + sum u + sum v,

whose gradient is ``1 - (sums of the columns)`` and whose generalised Hessian, with ``S`` the support of ``x``, is
``diag(S'1) - S' diag(1 / S1) S``. The potentials of the best assignment are where it starts: they are right in the
limit of large scores. A matrix may have a last row and a last column that need not sum to 1 (entering, leaving).
Cost: O(N1 N2) and one linear system a step; about ten steps.
"""

from libc.math cimport INFINITY, fabs
from libc.string cimport memcpy, memset
from nashlearn.kernels.assignment cimport assignment_room, best_matching, checked_sides
from nashlearn.kernels.checks cimport DOUBLE, cube, cube_out, extent, vector_out
from nashlearn.kernels.dense cimport cholesky, cholesky_solve
from nashlearn.kernels.scratch cimport Scratch, doubles, indices
from nashlearn.kernels.simd cimport simd_dot, simd_max, simd_threshold

cdef enum:
    _DIRECT = 100  # columns up to which Newton's system is factored; above, conjugate gradients on the sparse support
    _STEPS = 200


cdef struct Room:
    double* trial_x  # (N1, N2)
    double* miss  # (columns), as what follows
    double* trial_miss
    double* trial_v
    double* d
    double* H  # (columns, columns), for the direct method
    Py_ssize_t* support  # (N2), likewise
    Py_ssize_t* first  # (N1 + 1), for the iterative one, as what follows
    Py_ssize_t* member  # (N1 * N2)
    double* share  # (N1)
    double* scale  # (columns)
    double* residual
    double* product
    double* solution
    double* preconditioned
    double* direction


cdef Room _laid_out(const Sides* sides, size_t* at) noexcept nogil:
    cdef Room c
    cdef Py_ssize_t N1 = sides.N1, N2 = sides.N2, columns = sides.columns
    cdef Py_ssize_t few = columns if columns <= _DIRECT else 0, many = columns - few
    c.trial_x = doubles(at, N1 * N2)
    c.miss, c.trial_miss = doubles(at, columns), doubles(at, columns)
    c.trial_v, c.d = doubles(at, columns), doubles(at, columns)
    c.H, c.support = doubles(at, few * few), indices(at, N2)
    c.first, c.member, c.share = indices(at, N1 + 1), indices(at, N1 * N2 if many else 0), doubles(at, N1)
    c.scale, c.residual, c.product = doubles(at, many), doubles(at, many), doubles(at, many)
    c.solution, c.preconditioned, c.direction = doubles(at, many), doubles(at, many), doubles(at, many)
    return c


cdef size_t birkhoff_room(const Sides* sides) noexcept nogil:
    cdef size_t at = 0
    _laid_out(sides, &at)
    return at


cdef double _primal(
    const Sides* sides, const double* scores, const double* v, double* x, double* miss, double* worst
) noexcept nogil:
    """Fill ``x`` and what columns ``miss`` of 1 at potentials ``v``; the dual value, and the largest miss."""
    cdef Py_ssize_t i, j, N2 = sides.N2, columns = sides.columns
    cdef double value = 0.0, top, u
    cdef double* row
    for j in range(columns):
        miss[j] = 1.0
        value += v[j]
    for i in range(sides.N1):
        row = x + i * N2
        for j in range(columns):
            row[j] = scores[i * N2 + j] - v[j]
        for j in range(columns, N2):
            row[j] = scores[i * N2 + j]
        top = u = 0.0
        if i < sides.rows:
            top = simd_max(row, N2, -INFINITY)
            u = simd_threshold(row, N2, top, 1.0)
            value += top + u
        for j in range(N2):
            row[j] = max(row[j] - top - u, 0.0)
            value += 0.5 * row[j] * row[j]
        for j in range(columns):
            miss[j] -= row[j]
    worst[0] = 0.0
    for j in range(columns):
        worst[0] = max(worst[0], fabs(miss[j]))
    return value


cdef bint _newton_direct(const Sides* sides, const double* x, double ridge, double* d, Room* c) noexcept nogil:
    """By a Cholesky factorisation."""
    cdef Py_ssize_t i, j, a, b, size, columns = sides.columns
    cdef Py_ssize_t* support = c.support
    cdef double share
    cdef double* row
    memset(c.H, 0, columns * columns * sizeof(double))
    for j in range(columns):
        c.H[j * columns + j] = ridge
    for i in range(sides.N1):
        size = 0
        for j in range(sides.N2):
            if x[i * sides.N2 + j] > 0.0:
                support[size] = j
                size += 1
        share = 1.0 / size if i < sides.rows and size else 0.0
        for a in range(size):
            if support[a] < columns:
                row = c.H + support[a] * columns
                row[support[a]] += 1.0
                for b in range(a + 1):
                    row[support[b]] -= share
    if cholesky(c.H, columns, c.H, columns, 0, columns, 0.0) < columns:
        return False
    cholesky_solve(c.H, columns, columns, d)
    return True


cdef void _hessian_product(const Sides* sides, double ridge, Room* c) noexcept nogil:
    """The Hessian times ``direction`` into ``product``."""
    cdef Py_ssize_t i, j, t
    cdef double mean
    for j in range(sides.columns):
        c.product[j] = ridge * c.direction[j]
    for i in range(sides.N1):
        mean = 0.0
        for t in range(c.first[i], c.first[i + 1]):
            mean += c.direction[c.member[t]] if c.member[t] < sides.columns else 0.0
        mean *= c.share[i]
        for t in range(c.first[i], c.first[i + 1]):
            if c.member[t] < sides.columns:
                c.product[c.member[t]] += c.direction[c.member[t]] - mean


cdef void _list_support(const Sides* sides, const double* x, double ridge, Room* c) noexcept nogil:
    """The support of each row, its share, and the inverse of the Hessian's diagonal."""
    cdef Py_ssize_t i, j, t = 0, columns = sides.columns
    for j in range(columns):
        c.scale[j] = ridge
    c.first[0] = 0
    for i in range(sides.N1):
        for j in range(sides.N2):
            if x[i * sides.N2 + j] > 0.0:
                c.member[t] = j
                t += 1
        c.first[i + 1] = t
        c.share[i] = 1.0 / (t - c.first[i]) if i < sides.rows and t > c.first[i] else 0.0
        for j in range(c.first[i], t):
            if c.member[j] < columns:
                c.scale[c.member[j]] += 1.0 - c.share[i]
    for j in range(columns):
        c.scale[j] = 1.0 / max(c.scale[j], 1e-300)


cdef void _newton_iterative(const Sides* sides, const double* x, double ridge, double* d, Room* c) noexcept nogil:
    """By conjugate gradients, scaled by the diagonal, on the sparse support."""
    cdef Py_ssize_t j, iteration, columns = sides.columns
    cdef double energy, new_energy, target, step
    _list_support(sides, x, ridge, c)
    memset(c.solution, 0, columns * sizeof(double))
    for j in range(columns):
        c.residual[j] = d[j]
        c.preconditioned[j] = c.direction[j] = c.scale[j] * d[j]
    energy = simd_dot(c.residual, c.preconditioned, columns)
    target = 1e-20 * energy
    for iteration in range(4 * columns):
        if not energy > target:
            break
        _hessian_product(sides, ridge, c)
        step = energy / simd_dot(c.direction, c.product, columns)
        for j in range(columns):
            c.solution[j] += step * c.direction[j]
            c.residual[j] -= step * c.product[j]
            c.preconditioned[j] = c.scale[j] * c.residual[j]
        new_energy = simd_dot(c.residual, c.preconditioned, columns)
        step = new_energy / energy
        for j in range(columns):
            c.direction[j] = c.preconditioned[j] + step * c.direction[j]
        energy = new_energy
    memcpy(d, c.solution, columns * sizeof(double))


cdef bint newton_step(const Sides* sides, const double* x, double ridge, double* d, void* room) noexcept nogil:
    cdef size_t at = <size_t> room
    cdef Room c = _laid_out(sides, &at)
    if sides.columns <= _DIRECT:
        return _newton_direct(sides, x, ridge, d, &c)
    _newton_iterative(sides, x, ridge, d, &c)
    return True


cdef double project_matching(
    const Sides* sides, const double* scores, double tol, double* v, double* x, void* room
) noexcept nogil:
    cdef size_t at = <size_t> room
    cdef Room c = _laid_out(sides, &at)
    cdef Py_ssize_t j, step, halving, columns = sides.columns
    cdef double worst, trial_worst, trial, slope, length
    cdef double value = _primal(sides, scores, v, x, c.miss, &worst)
    cdef bint moved
    for step in range(_STEPS):
        if not worst > tol:
            break
        for j in range(columns):
            c.d[j] = -c.miss[j]
        if not newton_step(sides, x, 1e-12 + 1e-3 * min(worst, 0.01), c.d, room):
            break
        slope, length, moved = simd_dot(c.miss, c.d, columns), 1.0, False
        for halving in range(40):
            for j in range(columns):
                c.trial_v[j] = v[j] + length * c.d[j]
            trial = _primal(sides, scores, c.trial_v, c.trial_x, c.trial_miss, &trial_worst)
            if trial <= value + 1e-4 * length * slope or trial_worst <= 0.5 * worst:
                moved = True
                break
            length *= 0.5
        if not moved:
            break
        memcpy(v, c.trial_v, columns * sizeof(double))
        memcpy(x, c.trial_x, sides.N1 * sides.N2 * sizeof(double))
        memcpy(c.miss, c.trial_miss, columns * sizeof(double))
        value, worst = trial, trial_worst
    return worst


def project_each(scores, bint partial, double tol, x, residual):
    """The nearest point ``x`` (b, N1, N2) of each matrix of ``scores``, and how far its columns are from summing to 1.

    Returns the first matrix without a matching, or -1. Where ``partial``, the last row and column need not sum to 1.
    Cost: one assignment and about ten linear systems of the number of columns.
    """
    cdef Sides sides
    checked_sides(scores, partial, &sides)
    cdef Py_ssize_t b, infeasible = -1, n = extent(scores, "scores", 0), size = sides.N1 * sides.N2
    cdef const double* f = <const double*> cube(scores, "scores", DOUBLE, n, sides.N1, sides.N2)
    cdef double* found = <double*> cube_out(x, "x", DOUBLE, n, sides.N1, sides.N2)
    cdef double* missed = <double*> vector_out(residual, "residual", DOUBLE, n)
    cdef Scratch own = Scratch((2 * sides.rows + sides.columns) * sizeof(double))
    cdef Scratch room = Scratch(max(assignment_room(&sides), birkhoff_room(&sides)))
    cdef size_t at = <size_t> own.at
    cdef Py_ssize_t* column = indices(&at, sides.rows)
    cdef double* u = doubles(&at, sides.rows)
    cdef double* v = doubles(&at, sides.columns)
    with nogil:
        for b in range(n):
            if not best_matching(&sides, f + b * size, column, u, v, room.at):
                infeasible = b
                break
            missed[b] = project_matching(&sides, f + b * size, tol, v, found + b * size, room.at)
    return infeasible
