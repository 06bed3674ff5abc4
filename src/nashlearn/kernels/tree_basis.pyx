"""The linear algebra of the game over arborescences at a basis.

A basis says which arcs each player may use and which constraints, the single root and cuts, each meets with equality.
The predictor's strategy ``x`` and the adversary's potentials, prices, solve

    w x_e - price_e = theta_e  (arcs the adversary uses),    rows and tight constraints of x sum to 1,

the adversary's strategy and the predictor's potentials the same with 0 in the place of ``theta``: the transposed
system. Most arcs are used by both, and give ``x_e = (theta_e + price_e) / w`` at once; then rows are eliminated, whose
blocks are diagonal. What is left has one unknown for each tight constraint and each arc that only one player uses.
"""

from libc.string cimport memset
from nashlearn.kernels.dense cimport lu_factor, lu_solve, lu_solve_transposed
from nashlearn.kernels.scratch cimport doubles, indices, marks
from nashlearn.kernels.simd cimport simd_dot, simd_sum


cdef Side _new_side(Py_ssize_t arcs, Py_ssize_t room, size_t* at) noexcept nogil:
    cdef Side side
    side.x, side.price, side.excess = doubles(at, arcs), doubles(at, arcs), doubles(at, arcs)
    side.lam, side.slack = doubles(at, room + 1), doubles(at, room + 1)
    return side


cdef size_t lay_basis(Basis* basis, Py_ssize_t n, size_t at) noexcept nogil:
    cdef Py_ssize_t arcs = n * (n + 1), room = 3 * n + 8, most = 2 * n + 16, player
    basis.n, basis.room, basis.most = n, room, most
    basis.inner = doubles(&at, (room + 1) * (n + 1))
    basis.theta, basis.allowed = doubles(&at, arcs), doubles(&at, arcs)
    for player in range(2):
        basis.held[player], basis.tight[player] = doubles(&at, arcs), marks(&at, room + 1)
        basis.equation[player], basis.share[player] = indices(&at, most), doubles(&at, n * most)
        basis.at[player] = _new_side(arcs, room, &at)
    basis.step = _new_side(arcs, room, &at)
    basis.depth, basis.system, basis.pivot = doubles(&at, n), doubles(&at, most * most), indices(&at, most)
    basis.right, basis.row = doubles(&at, most), doubles(&at, n)
    basis.f, basis.b, basis.crossed = doubles(&at, arcs), doubles(&at, n + 1 + room), indices(&at, room + 1)
    basis.around[0], basis.around[1] = indices(&at, room + 1), indices(&at, room + 1)
    return at


cdef void price_arcs(const Basis* basis, const double* y, const double* lam, double* out) noexcept nogil:
    cdef Py_ssize_t c, d, h, n = basis.n
    cdef double all, own
    cdef double* row
    cdef const double* inner
    for d in range(n):
        row, all = out + d * (n + 1), y[d]
        for h in range(n + 1):
            row[h] = 0.0
        for c in range(1, basis.K + 1):
            inner = basis.inner + c * (n + 1)
            if lam[c] != 0.0 and inner[d + 1] > 0.0:
                own = lam[c]
                all += own
                for h in range(n + 1):
                    row[h] -= own * inner[h]
        for h in range(n + 1):
            row[h] += all
        row[0] += lam[0]


cdef bint _list_equations(Basis* basis) noexcept nogil:
    """Constraints of each player, then arcs that only the other holds; False where these are not as many, or many."""
    cdef Py_ssize_t a, c, player, k
    cdef const double* own
    cdef const double* other
    for player in range(2):
        own, other, k = basis.held[player], basis.held[1 - player], 0
        for c in range(basis.K + 1):
            if basis.tight[player][c]:
                if k == basis.most:
                    return False
                basis.equation[player][k] = c
                k += 1
        for a in range(basis.n * (basis.n + 1)):
            if other[a] > own[a]:
                if k == basis.most:
                    return False
                basis.equation[player][k] = -1 - a
                k += 1
        if player == 0:
            basis.size = k
    return basis.size == k


cdef Py_ssize_t _around(const Basis* basis, Py_ssize_t player, Py_ssize_t d, Py_ssize_t* found) noexcept nogil:
    """Which of a player's equations are constraints that arcs of token ``d`` may count in; how many."""
    cdef Py_ssize_t i, c, m = 0
    for i in range(basis.size):
        c = basis.equation[player][i]
        if c < 0:
            break
        if c == 0 or basis.inner[c * (basis.n + 1) + d + 1] > 0.0:
            found[m] = i
            m += 1
    return m


cdef void _count(Basis* basis) noexcept nogil:
    """The arcs that both players hold: how they couple rows and constraints, and these with each other."""
    cdef Py_ssize_t a, d, h, i, j, m, player, n = basis.n, size = basis.size
    cdef Py_ssize_t near[2]
    cdef double inverse = 1.0 / basis.weight
    cdef const double* first = basis.held[0]
    cdef const double* second = basis.held[1]
    cdef Py_ssize_t* around
    cdef Py_ssize_t* crossed = basis.crossed
    memset(basis.system, 0, size * size * sizeof(double))
    for d in range(n):
        basis.depth[d] = 0.0
        for player in range(2):
            memset(basis.share[player] + d * size, 0, size * sizeof(double))
            near[player] = _around(basis, player, d, basis.around[player])
        for h in range(n + 1):
            a = d * (n + 1) + h
            if first[a] * second[a] == 0.0:
                continue
            basis.depth[d] += inverse
            m, around = 0, basis.around[1]
            for j in range(near[1]):
                if crosses(basis, basis.equation[1][around[j]], d, h):
                    crossed[m] = around[j]
                    basis.share[1][d * size + around[j]] += inverse
                    m += 1
            around = basis.around[0]
            for i in range(near[0]):
                if crosses(basis, basis.equation[0][around[i]], d, h):
                    basis.share[0][d * size + around[i]] += inverse
                    for j in range(m):
                        basis.system[around[i] * size + crossed[j]] += inverse


cdef void _count_alone(Basis* basis, Py_ssize_t player) noexcept nogil:
    """The arcs that only one player holds: unknowns of that player's side, equations of the other's."""
    cdef Py_ssize_t a, d, h, i, j, n = basis.n, size = basis.size
    cdef Py_ssize_t by = size if player == 0 else 1, step = 1 if player == 0 else size
    for j in range(size):
        a = -1 - basis.equation[1 - player][j]
        if a < 0:
            continue
        d, h = a // (n + 1), a % (n + 1)
        basis.share[1 - player][d * size + j] = 1.0
        for i in range(size):
            if basis.equation[player][i] >= 0 and crosses(basis, basis.equation[player][i], d, h):
                basis.system[i * by + j * step] = 1.0


cdef bint factor_basis(Basis* basis) noexcept nogil:
    cdef Py_ssize_t d, i, j, size
    cdef double scale
    cdef double* row
    cdef const double* left
    cdef const double* right
    if not _list_equations(basis):
        return False
    _count(basis)
    _count_alone(basis, 0)
    _count_alone(basis, 1)
    size = basis.size
    for d in range(basis.n):
        if not basis.depth[d] > 0.0:
            return False
        left, right = basis.share[0] + d * size, basis.share[1] + d * size
        for i in range(size):
            if left[i] != 0.0:
                scale, row = left[i] / basis.depth[d], basis.system + i * size
                for j in range(size):
                    row[j] -= scale * right[j]
    return lu_factor(basis.system, size, size, basis.pivot)


cdef double _across(const Basis* basis, Py_ssize_t c, const double* x, const double* total) noexcept nogil:
    """The sum of ``x`` (n, n + 1) over the arcs of a constraint; ``total`` (n) are those over rows."""
    cdef Py_ssize_t d, n = basis.n
    cdef const double* inner = basis.inner + c * (n + 1)
    cdef double sum = 0.0
    for d in range(n):
        if c == 0:
            sum += x[d * (n + 1)]
        elif inner[d + 1] > 0.0:
            sum += total[d] - simd_dot(x + d * (n + 1), inner, n + 1)
    return sum


cdef void _gather(Basis* basis, Py_ssize_t player, double* taken) noexcept nogil:
    """The right side: what arcs held by both leave of ``b``, rows eliminated; ``taken`` (n, n + 1) is scratch."""
    cdef Py_ssize_t a, d, i, k, n = basis.n, size = basis.size
    cdef double own
    cdef bint some
    cdef double* right = basis.right
    cdef const double* first = basis.held[0]
    cdef const double* second = basis.held[1]
    cdef const double* f = basis.f
    cdef const double* share
    own = 1.0 / basis.weight
    for a in range(n * (n + 1)):
        taken[a] = f[a] * first[a] * second[a] * own
    for d in range(n):
        basis.row[d] = simd_sum(taken + d * (n + 1), n + 1)
    some = simd_dot(taken, taken, n * (n + 1)) > 0.0
    for i in range(size):
        k = basis.equation[player][i]
        right[i] = basis.b[n + k] if k >= 0 else -f[-1 - k]
        if some and k >= 0:
            right[i] -= _across(basis, k, taken, basis.row)
    for d in range(n):
        basis.row[d] = basis.b[d] - basis.row[d]
        share, own = basis.share[player] + d * size, basis.row[d] / basis.depth[d]
        for i in range(size):
            right[i] -= own * share[i]


cdef void _spread(const Basis* basis, Py_ssize_t player, Side* out) noexcept nogil:
    """From prices to the arcs that both hold, and to what the other loses by arcs that it does not hold."""
    cdef Py_ssize_t a, arcs = basis.n * (basis.n + 1)
    cdef double w = basis.weight, inverse = 1.0 / w, sign = 1.0 if player == 0 else -1.0
    cdef const double* own = basis.held[player]
    cdef const double* other = basis.held[1 - player]
    cdef const double* allowed = basis.allowed
    cdef const double* f = basis.f
    cdef const double* price = out.price
    cdef double* x = out.x
    cdef double* excess = out.excess
    for a in range(arcs):
        excess[a] = f[a] + price[a]
    for a in range(arcs):
        x[a] += own[a] * other[a] * excess[a] * inverse
    for a in range(arcs):
        excess[a] = (allowed[a] - other[a]) * sign * (w * x[a] - excess[a])


cdef void solve_side(Basis* basis, Py_ssize_t player, Py_ssize_t entering, Side* out) noexcept nogil:
    cdef Py_ssize_t d, i, k, n = basis.n, size = basis.size
    cdef double* right = basis.right
    _gather(basis, player, out.excess)
    if player == 0:
        lu_solve(basis.system, size, size, basis.pivot, right)
    else:
        lu_solve_transposed(basis.system, size, size, basis.pivot, right)
    memset(out.lam, 0, (basis.K + 1) * sizeof(double))
    memset(out.x, 0, n * (n + 1) * sizeof(double))
    for d in range(n):
        basis.row[d] = (basis.row[d] - simd_dot(basis.share[1 - player] + d * size, right, size)) / basis.depth[d]
    for i in range(size):
        k = basis.equation[1 - player][i]
        if k >= 0:
            out.lam[k] = right[i]
        else:
            out.x[-1 - k] = right[i]
    if entering >= 0:
        out.x[entering] = 1.0
    price_arcs(basis, basis.row, out.lam, out.price)
    _spread(basis, player, out)
    for d in range(n):
        basis.row[d] = basis.b[d] + (1.0 if entering >= 0 and entering // (n + 1) == d else 0.0)
    for i in range(1, basis.K + 1):
        if player == 1:
            out.lam[i] = -out.lam[i]
        out.slack[i] = 0.0
        if not basis.tight[player][i]:
            out.slack[i] = _across(basis, i, out.x, basis.row) - basis.b[n + i]
