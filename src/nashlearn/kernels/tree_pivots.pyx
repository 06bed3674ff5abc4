"""The game over arborescences by pivots: the simplex method from the basis of the projection.

The predictor's strategy and the adversary's potentials are a linear programme, the other way round they are its dual
(:mod:`nashlearn.kernels.tree_basis`). At the face of the polytope on which the scores' nearest point lies, the first
are feasible: the nearest point is the predictor's strategy there. Mostly so are the second, or a few pivots away.
A pivot lets the partner of what is most negative on the one side grow until something on the other becomes 0.
"""

from libc.math cimport INFINITY
from libc.string cimport memcpy, memset
from nashlearn.kernels.dense cimport cholesky
from nashlearn.kernels.tree_basis cimport Basis, Side, crosses, factor_basis, price_arcs, solve_side
from nashlearn.kernels.tree_projection cimport Cuts

cdef double _NEGATIVE = 1e-11  # what counts as such in strategies, slacks and potentials
cdef double _FLAT = 1e-9  # changes that do not count in a step of length 1, pivots that do not in a factor

cdef enum Kind:  # of what is 0 or basic, on one side: each has a partner on the other
    ARC  # x of an arc, whose partner is the other side's excess
    EXCESS
    POTENTIAL  # lam of a cut, whose partner is the other side's slack
    SLACK


cdef struct Found:  # what enters or leaves
    Kind kind
    Py_ssize_t index  # -1 for nothing
    double worth


cdef void _consider(Found* best, Kind kind, Py_ssize_t index, double worth) noexcept nogil:
    if worth < best.worth:
        best.kind, best.index, best.worth = kind, index, worth


cdef Found _most_negative(const Basis* basis, Py_ssize_t player) noexcept nogil:
    """What is least on a player's side; an index of -1 where nothing is negative."""
    cdef Py_ssize_t a, c
    cdef const Side* side = &basis.at[player]
    cdef const double* x = side.x
    cdef const double* excess = side.excess
    cdef Found best
    best.kind, best.index, best.worth = ARC, -1, -_NEGATIVE
    for a in range(basis.n * (basis.n + 1)):
        if x[a] < best.worth or excess[a] < best.worth:
            _consider(&best, ARC, a, x[a])
            _consider(&best, EXCESS, a, excess[a])
    for c in range(1, basis.K + 1):
        _consider(&best, POTENTIAL, c, side.lam[c])
        _consider(&best, SLACK, c, side.slack[c])
    return best


cdef void _solve_at(Basis* basis, Py_ssize_t player) noexcept nogil:
    """A player's strategy at the basis, and the other's potentials."""
    cdef Py_ssize_t i
    for i in range(basis.n + 1 + basis.K):
        basis.b[i] = 1.0
    if player == 0:
        memcpy(basis.f, basis.theta, basis.n * (basis.n + 1) * sizeof(double))
    else:
        memset(basis.f, 0, basis.n * (basis.n + 1) * sizeof(double))
    solve_side(basis, player, -1, &basis.at[player])


cdef void _solve_step(Basis* basis, Py_ssize_t player, Found enters) noexcept nogil:
    """How a player's side changes for each unit of the partner of what ``enters``, which is on the other side."""
    cdef Py_ssize_t c, d, h, n = basis.n, i = enters.index, entering = -1
    cdef double sign = 1.0 if player == 0 else -1.0
    memset(basis.f, 0, n * (n + 1) * sizeof(double))
    memset(basis.b, 0, (n + 1 + basis.K) * sizeof(double))
    if enters.kind == ARC:  # the excess of an arc that the other holds
        basis.f[i] = sign
    elif enters.kind == EXCESS:  # an arc that the player does not hold
        entering, d, h = i, i // (n + 1), i % (n + 1)
        basis.f[i] = -basis.weight * basis.held[1 - player][i]
        basis.b[d] = -1.0
        for c in range(basis.K + 1):
            basis.b[n + c] = -1.0 if basis.tight[player][c] and crosses(basis, c, d, h) else 0.0
    elif enters.kind == POTENTIAL:  # the slack of a cut that the player meets with equality
        basis.b[n + i] = 1.0
    else:  # the potential of a cut that the other does not meet with equality
        for d in range(n):
            for h in range(n + 1):
                basis.f[d * (n + 1) + h] = sign if crosses(basis, i, d, h) else 0.0
    solve_side(basis, player, entering, &basis.step)


cdef void _block(Found* first, Kind kind, Py_ssize_t index, double value, double change, double* speed) noexcept nogil:
    """Whether what changes so is 0 first; of those that are at once, the one that changes fastest."""
    cdef double length
    if change < -_FLAT:
        length = max(value, 0.0) / -change
        if length < first.worth - 1e-12 or (length <= first.worth + 1e-12 and -change > speed[0]):
            first.kind, first.index, first.worth, speed[0] = kind, index, min(length, first.worth), -change


cdef Found _first_zero(const Basis* basis, Py_ssize_t player) noexcept nogil:
    """What becomes 0 first on a player's side along the step."""
    cdef Py_ssize_t a, c
    cdef const Side* at = &basis.at[player]
    cdef const Side* step = &basis.step
    cdef const double* x = step.x
    cdef const double* excess = step.excess
    cdef double speed = 0.0
    cdef Found first
    first.kind, first.index, first.worth = ARC, -1, INFINITY
    for a in range(basis.n * (basis.n + 1)):
        if x[a] < -_FLAT or excess[a] < -_FLAT:
            _block(&first, ARC, a, at.x[a], x[a], &speed)
            _block(&first, EXCESS, a, at.excess[a], excess[a], &speed)
    for c in range(1, basis.K + 1):
        _block(&first, POTENTIAL, c, at.lam[c], step.lam[c], &speed)
        _block(&first, SLACK, c, at.slack[c], step.slack[c], &speed)
    return first


cdef void _swap(Basis* basis, Py_ssize_t player, Found found) noexcept nogil:
    """Let what was found on a player's side be 0, and its partner not."""
    if found.kind == ARC:
        basis.held[player][found.index] = 0.0
    elif found.kind == EXCESS:
        basis.held[1 - player][found.index] = 1.0
    elif found.kind == POTENTIAL:
        basis.tight[1 - player][found.index] = False
    else:
        basis.tight[player][found.index] = True


cdef void _advance(Basis* basis, Py_ssize_t player, Found enters, double length) noexcept nogil:
    """Follow the step on a player's side; what entered is as large as the step is long."""
    cdef Py_ssize_t a, c
    cdef Side* at = &basis.at[player]
    cdef const Side* step = &basis.step
    cdef double* x = at.x
    cdef double* excess = at.excess
    cdef const double* dx = step.x
    cdef const double* more = step.excess
    for a in range(basis.n * (basis.n + 1)):
        x[a] += length * dx[a]
        excess[a] += length * more[a]
    for c in range(1, basis.K + 1):
        at.lam[c] += length * step.lam[c]
        at.slack[c] += length * step.slack[c]
    if enters.kind == ARC:
        at.excess[enters.index] = length
    elif enters.kind == POTENTIAL:
        at.slack[enters.index] = length
    elif enters.kind == SLACK:
        at.lam[enters.index] = length


cdef bint pivot(Basis* basis, Py_ssize_t* left) noexcept nogil:
    cdef Found enters, leaves
    cdef Py_ssize_t player = 0
    cdef bint moved = False
    if not factor_basis(basis):
        return False
    _solve_at(basis, 0)
    while True:
        _solve_at(basis, 1 - player)
        enters = _most_negative(basis, 1 - player)
        if enters.index < 0:
            if moved:  # steps have added up rounding errors
                _solve_at(basis, player)
            player = 1 - player
            enters = _most_negative(basis, 1 - player)
            if enters.index < 0:
                return True
        if left[0] == 0:
            return False
        left[0], moved = left[0] - 1, True
        _solve_step(basis, player, enters)
        leaves = _first_zero(basis, player)
        if leaves.index < 0:
            return False
        _advance(basis, player, enters, leaves.worth)
        _swap(basis, 1 - player, enters)
        _swap(basis, player, leaves)
        if not factor_basis(basis):
            return False


cdef bint add_cut(Basis* basis, const unsigned char* inside) noexcept nogil:
    cdef Py_ssize_t d, n = basis.n
    cdef double* inner
    if basis.K == basis.room:
        return False
    basis.K += 1
    inner = basis.inner + basis.K * (n + 1)
    inner[0] = 0.0
    for d in range(n):
        inner[d + 1] = 1.0 if inside[d] else 0.0
    basis.tight[0][basis.K] = basis.tight[1][basis.K] = False
    return True


cdef Py_ssize_t _curvature(Basis* basis) noexcept nogil:
    """The dual's curvature on the face, in ``basis.system``, of the constraints in ``basis.equation[0]``; how many."""
    cdef Py_ssize_t a, c, d, h, i, j, m, count, k = 0, n = basis.n, most = basis.most
    cdef double* share = basis.right
    cdef Py_ssize_t* marked = basis.crossed
    for c in range(basis.K + 1):
        if basis.tight[0][c] and k < most:
            basis.equation[0][k] = c
            k += 1
    memset(basis.system, 0, k * most * sizeof(double))
    for d in range(n):
        count = 0
        memset(share, 0, k * sizeof(double))
        for h in range(n + 1):
            a = d * (n + 1) + h
            if basis.held[0][a] > 0.0:
                count, m = count + 1, 0
                for i in range(k):
                    if crosses(basis, basis.equation[0][i], d, h):
                        share[i] += 1.0
                        marked[m] = i
                        m += 1
                for i in range(m):
                    for j in range(i + 1):
                        basis.system[marked[i] * most + marked[j]] += 1.0
        for i in range(k):
            if share[i] > 0.0:
                for j in range(i + 1):
                    basis.system[i * most + j] -= share[i] * share[j] / count
    return k


cdef void _level_rows(const Basis* basis, const double* arcs, double* price, double* y) noexcept nogil:
    """Potentials of rows at which ``price``, without them so far, agrees with ``arcs`` on average on the face."""
    cdef Py_ssize_t a, d, h, count, n = basis.n
    for d in range(n):
        y[d], count = 0.0, 0
        for h in range(n + 1):
            a = d * (n + 1) + h
            if basis.held[0][a] > 0.0:
                y[d] += arcs[a] - price[a]
                count += 1
        y[d] /= count
        for h in range(n + 1):
            price[d * (n + 1) + h] += y[d]


cdef void _free_direction(Basis* basis, Py_ssize_t tied) noexcept nogil:
    """Potentials that change no price on the face, into ``basis.step``: constraint ``tied`` depends on those before it.

    ``basis.system`` has their factor, with a row for the constraint.
    """
    cdef Py_ssize_t i, j, n = basis.n, most = basis.most
    cdef const double* L = basis.system
    cdef double* right = basis.right
    cdef Side* step = &basis.step
    memcpy(right, L + tied * most, tied * sizeof(double))
    memset(step.lam, 0, (basis.K + 1) * sizeof(double))
    for i in range(tied - 1, -1, -1):
        right[i] /= L[i * most + i]
        for j in range(i):
            right[j] -= L[i * most + j] * right[i]
        step.lam[basis.equation[0][i]] = -right[i]
    step.lam[basis.equation[0][tied]] = 1.0
    memset(basis.row, 0, n * sizeof(double))
    memset(step.x, 0, n * (n + 1) * sizeof(double))
    price_arcs(basis, basis.row, step.lam, step.price)
    _level_rows(basis, step.x, step.price, basis.row)


cdef Found _first_free(const Basis* basis, double way) noexcept nogil:
    """What becomes 0 first along the free direction, or against it (``way`` -1): an arc's excess or a potential."""
    cdef Py_ssize_t a, c
    cdef const Side* at = &basis.at[0]
    cdef const Side* step = &basis.step
    cdef double speed = 0.0
    cdef Found first
    first.kind, first.index, first.worth = EXCESS, -1, INFINITY
    for a in range(basis.n * (basis.n + 1)):
        if basis.held[0][a] < basis.allowed[a]:
            _block(&first, EXCESS, a, at.excess[a], -way * step.price[a], &speed)
    for c in range(1, basis.K + 1):
        if basis.tight[0][c]:
            _block(&first, POTENTIAL, c, at.lam[c], way * step.lam[c], &speed)
    return first


cdef bint _untie(Basis* basis, Py_ssize_t tied) noexcept nogil:
    """Move potentials along the free direction of a constraint until an arc joins the face or a cut is let go."""
    cdef Py_ssize_t a, c
    cdef Side* at = &basis.at[0]
    cdef const Side* step = &basis.step
    cdef double way = 1.0
    cdef Found first, other
    _free_direction(basis, tied)
    first, other = _first_free(basis, 1.0), _first_free(basis, -1.0)
    if other.worth < first.worth:
        first, way = other, -1.0
    if first.index < 0:
        return False
    way *= first.worth
    for a in range(basis.n * (basis.n + 1)):
        at.excess[a] -= way * step.price[a]
    for c in range(basis.K + 1):
        at.lam[c] += way * step.lam[c]
    if first.kind == EXCESS:
        basis.held[0][first.index] = basis.held[1][first.index] = 1.0
    else:
        basis.tight[0][first.index] = basis.tight[1][first.index] = False
    return True


cdef bint _independent(Basis* basis) noexcept nogil:
    """Make the constraints of the face independent: at a point of lower dimension potentials are not unique."""
    cdef Py_ssize_t k, tied, turn
    for turn in range(basis.room):
        k = _curvature(basis)
        tied = cholesky(basis.system, basis.most, basis.system, basis.most, 0, k, _FLAT)
        if tied == k:
            return True
        if not _untie(basis, tied):
            return False
    return False


cdef bint begin_at_projection(
    Basis* basis, const double* theta, double weight, bint single_root, Py_ssize_t k, const Cuts* cuts
) noexcept nogil:
    cdef Py_ssize_t a, c, d, n = basis.n
    cdef Side* at = &basis.at[0]
    basis.weight, basis.K = weight, 0
    basis.tight[0][0] = basis.tight[1][0] = single_root
    memset(at.lam, 0, (basis.room + 1) * sizeof(double))
    for c in range(k):
        if cuts.free[c]:
            at.lam[0] = weight * cuts.lam[c]
        elif cuts.lam[c] > 0.0:
            if not add_cut(basis, cuts.members + c * n):
                return False
            at.lam[basis.K] = weight * cuts.lam[c]
            basis.tight[0][basis.K] = basis.tight[1][basis.K] = True
    for a in range(n * (n + 1)):
        basis.allowed[a] = 1.0 if theta[a] > -INFINITY else 0.0
        basis.theta[a] = theta[a] if theta[a] > -INFINITY else 0.0
        basis.held[0][a] = basis.held[1][a] = 1.0 if cuts.x[a] > 0.0 else 0.0
        at.x[a] = weight * cuts.x[a] - basis.theta[a]
    memset(basis.row, 0, n * sizeof(double))
    price_arcs(basis, basis.row, at.lam, at.price)
    _level_rows(basis, at.x, at.price, basis.row)
    for a in range(n * (n + 1)):
        at.excess[a] = at.x[a] - at.price[a]
    return _independent(basis)
