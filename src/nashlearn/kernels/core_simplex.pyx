"""The primal simplex method for matrix games, carrying only the core of its basis.

The adversary's programme is

    max_{v, q}  v + <f, q>    s.t.  L q >= v,  1'q = 1,  q >= 0.

A basis is a support ``R`` of labels and as many tight rows ``S`` of ``L``; everything about it is in the
inverse ``N`` of the core ``[[0, 1'], [-1, L_SR]]``: its first column is ``(v, q_R)``, and ``y = N'(1, f_R)``
holds the value and ``-p_S``. A pivot swaps a column, swaps a row, grows or shrinks the core, each in
O(r^2) with ``r = |R| = |S|``, and prices in O(r (options + labels)). The scores enter the objective only,
so the basis of one row of scores stays feasible for the next. Dantzig's rule chooses what enters; ties in
what leaves are broken as if the rows read ``L q >= v - tilt`` with infinitesimal, generic tilts, which cannot
cycle [charnes1952]_ and, unlike Bland's rule, is fast where many rows tie. What a column of ``L`` costs
whatever the option is part of its label's score; the rest is scaled to a largest entry of 1, and scores are
taken relative to the largest: tolerances are absolute.
"""

from libc.math cimport INFINITY, fabs
from libc.string cimport memset
from nashlearn.kernels.dense cimport lu_factor, lu_solve
from nashlearn.kernels.scratch cimport doubles, indices, marks

cdef double _GAIN = 5e-14  # a gain below this is rounding
cdef double _RATE = 1e-11  # a rate below this blocks nothing: as a pivot it would ruin N
cdef double _STEEP = 1e4  # a pivot beyond this leaves a nearly singular core
cdef double _TIE = 1e-14  # variables that differ by less reach zero together
cdef double _DRIFT = 1e-11  # residual of N's first column that asks for a new start
cdef enum:
    _REFRESH = 60  # pivots after which N is computed anew


cdef Core new_core(Py_ssize_t options, Py_ssize_t k, size_t* at) noexcept nogil:
    cdef Core c
    c.k, c.options, c.most = k, options, min(options, k) + 2
    c.state = indices(at, 2)
    c.R, c.S, c.pivot = indices(at, c.most), indices(at, c.most), indices(at, c.most)
    c.N, c.B = doubles(at, c.most * c.most), doubles(at, c.most * c.most)
    c.y, c.u, c.t = doubles(at, c.most), doubles(at, c.most), doubles(at, c.most)
    c.f, c.gain = doubles(at, k), doubles(at, k)
    c.slack, c.rate = doubles(at, options), doubles(at, options)
    c.inside, c.tight = marks(at, k), marks(at, options)
    return c


cdef bint _refresh(const Matrix* loss, Core* c) noexcept nogil:
    """Compute ``N`` and the slacks anew from ``R`` and ``S``; False where the core is singular."""
    cdef Py_ssize_t i, j, size = c.state[0] + 1, w = c.most
    cdef double* column = c.t
    memset(c.B, 0, w * w * sizeof(double))
    for i in range(1, size):
        c.B[i], c.B[i * w] = 1.0, -1.0
        for j in range(1, size):
            c.B[i * w + j] = loss.rows[c.S[i - 1] * c.k + c.R[j - 1]]
    if not lu_factor(c.B, w, size, c.pivot):
        return False
    for i in range(size):
        if fabs(c.B[i * w + i]) < 1e-14:
            return False
    for j in range(size):
        memset(column, 0, size * sizeof(double))
        column[j] = 1.0
        lu_solve(c.B, w, size, c.pivot, column)
        for i in range(size):
            c.N[i * w + j] = column[i]
    c.state[1] = 0
    _slacks(loss, c)
    for i in range(1, size):
        if c.N[i * w] < -_DRIFT:
            return False
    for i in range(c.options):
        if not c.slack[i] >= -_DRIFT:
            return False
    return True


cdef void _slacks(const Matrix* loss, Core* c) noexcept nogil:
    cdef Py_ssize_t i, m
    cdef double mass
    cdef const double* column
    for i in range(c.options):
        c.slack[i] = -c.N[0]
    for m in range(c.state[0]):
        mass, column = c.N[(m + 1) * c.most], loss.columns + c.R[m] * c.options
        for i in range(c.options):
            c.slack[i] += mass * column[i]


cdef void _start(const Matrix* loss, Core* c) noexcept nogil:
    """The better of the basis at hand and the best pure strategy with the option that answers it."""
    cdef Py_ssize_t i, j, m, label = 0, option, w = c.most
    cdef double secured
    for j in range(1, c.k):
        if c.f[j] > c.f[label]:
            label = j
    if c.state[0] > 0:
        secured = c.N[0]
        for m in range(c.state[0]):
            secured += c.f[c.R[m]] * c.N[(m + 1) * w]
        if secured >= c.f[label] and (c.state[1] <= _REFRESH or _refresh(loss, c)):
            return
    option = loss.lowest[label]
    memset(c.inside, 0, c.k)
    memset(c.tight, 0, c.options)
    c.inside[label] = c.tight[option] = True
    c.R[0], c.S[0] = label, option
    c.N[0], c.N[1] = 0.0, -1.0
    c.N[w], c.N[w + 1] = 1.0, 0.0
    c.state[0], c.state[1] = 1, 0
    for i in range(c.options):
        c.slack[i] = loss.columns[label * c.options + i]


cdef Py_ssize_t _price(const Matrix* loss, Core* c) noexcept nogil:
    """What enters the basis: label ``j`` as ``j``, the slack of row ``S[s]`` as ``k + s``, nothing as -1."""
    cdef Py_ssize_t i, j, m, s, r = c.state[0], k = c.k, w = c.most, entering = -1
    cdef double score, p, best = _GAIN
    cdef double* y = c.y
    cdef double* gain = c.gain
    cdef const double* row
    for i in range(r + 1):
        y[i] = c.N[i]
    for m in range(r):
        score = c.f[c.R[m]]
        for i in range(r + 1):
            y[i] += score * c.N[(m + 1) * w + i]
    for j in range(k):
        gain[j] = c.f[j] - y[0]
    for s in range(r):
        p, row = -y[s + 1], loss.rows + c.S[s] * k
        for j in range(k):
            gain[j] += p * row[j]
    for j in range(k):
        if gain[j] > best and not c.inside[j]:
            best, entering = gain[j], j
    for s in range(r):
        if y[s + 1] > best:
            best, entering = y[s + 1], k + s
    return entering


cdef void _direction(const Matrix* loss, Core* c, Py_ssize_t entering) noexcept nogil:
    """How ``(v, q_R)`` and the slacks move as the entering variable grows, into ``u`` and ``rate``."""
    cdef Py_ssize_t i, m, s, r = c.state[0], k = c.k, w = c.most
    cdef double* u = c.u
    cdef double* rate = c.rate
    cdef const double* column
    cdef double move
    if entering < k:
        column = loss.columns + entering * c.options
        for i in range(r + 1):
            u[i] = -c.N[i * w]
            for s in range(r):
                u[i] -= c.N[i * w + s + 1] * column[c.S[s]]
        for i in range(c.options):
            rate[i] = column[i] - u[0]
    else:
        for i in range(r + 1):
            u[i] = c.N[i * w + entering - k + 1]
        for i in range(c.options):
            rate[i] = -u[0]
    for m in range(r):
        move, column = u[m + 1], loss.columns + c.R[m] * c.options
        for i in range(c.options):
            rate[i] += move * column[i]


cdef Py_ssize_t _leaving(const Matrix* loss, Core* c, double* step) noexcept nogil:
    """First variable to reach zero: support position ``m`` as ``m``, row ``i`` as ``-1 - i``; ``most`` where there is none.

    The first pass finds the step, give or take a tie; the second the one of those within it that the
    tilted rows would stop first.
    """
    cdef Py_ssize_t i, m, s, r = c.state[0], w = c.most, ties = 0, leaving = c.most
    cdef double* N = c.N
    cdef double* u = c.u
    cdef double* t = c.t
    cdef double* rate = c.rate
    cdef double most = INFINITY, first = INFINITY, tilted
    for m in range(r):
        if -u[m + 1] > _RATE:
            most = min(most, (max(N[(m + 1) * w], 0.0) + _TIE) / -u[m + 1])
    for i in range(c.options):
        if -rate[i] > _RATE and not c.tight[i]:
            most = min(most, (max(c.slack[i], 0.0) + _TIE) / -rate[i])
    for m in range(r):
        if -u[m + 1] > _RATE and N[(m + 1) * w] <= -u[m + 1] * most:
            ties, leaving = ties + 1, m
    for i in range(c.options):
        if -rate[i] > _RATE and not c.tight[i] and c.slack[i] <= -rate[i] * most:
            ties, leaving = ties + 1, -1 - i
    if ties > 1:
        for i in range(r + 1):  # how (v, q_R) answers the tilts
            t[i] = 0.0
            for s in range(r):
                t[i] -= N[i * w + s + 1] * loss.tilt[c.S[s]]
        for m in range(r):
            if -u[m + 1] > _RATE and N[(m + 1) * w] <= -u[m + 1] * most and t[m + 1] / -u[m + 1] < first:
                first, leaving = t[m + 1] / -u[m + 1], m
        for i in range(c.options):
            if -rate[i] > _RATE and not c.tight[i] and c.slack[i] <= -rate[i] * most:
                tilted = loss.tilt[i] - t[0]
                for m in range(r):
                    tilted += loss.rows[i * c.k + c.R[m]] * t[m + 1]
                if tilted / -rate[i] < first:
                    first, leaving = tilted / -rate[i], -1 - i
    step[0] = 0.0
    if leaving == c.most:
        return leaving
    if leaving >= 0:
        step[0] = max(N[(leaving + 1) * w], 0.0) / -u[leaving + 1]
    else:
        step[0] = max(c.slack[-1 - leaving], 0.0) / -rate[-1 - leaving]
    return leaving


cdef void _bordering(const Matrix* loss, Core* c, Py_ssize_t option) noexcept nogil:
    """``t = (-1, L_iR) N`` for a row ``i`` that is to become tight."""
    cdef Py_ssize_t i, m, r = c.state[0]
    cdef double entry
    for i in range(r + 1):
        c.t[i] = -c.N[i]
    for m in range(r):
        entry = loss.rows[option * c.k + c.R[m]]
        for i in range(r + 1):
            c.t[i] += entry * c.N[(m + 1) * c.most + i]


cdef void _enter_label(const Matrix* loss, Core* c, Py_ssize_t label, Py_ssize_t leaving) noexcept nogil:
    """Update the core for a label that enters: swap it with one of the support, or grow by a tight row."""
    cdef Py_ssize_t i, j, m, option, r = c.state[0], w = c.most
    cdef double* N = c.N
    cdef double* u = c.u
    cdef double* t = c.t
    cdef double schur, factor
    if leaving >= 0:
        m = leaving + 1
        for j in range(r + 1):
            N[m * w + j] /= -u[m]
        for i in range(r + 1):
            if i != m:
                for j in range(r + 1):
                    N[i * w + j] += u[i] * N[m * w + j]
        c.inside[c.R[leaving]] = False
        c.R[leaving] = label
    else:
        option = -1 - leaving
        _bordering(loss, c, option)
        schur = c.rate[option]
        for i in range(r + 1):
            factor = u[i] / schur
            for j in range(r + 1):
                N[i * w + j] -= factor * t[j]
            N[i * w + r + 1] = factor
        for j in range(r + 1):
            N[(r + 1) * w + j] = -t[j] / schur
        N[(r + 1) * w + r + 1] = 1.0 / schur
        c.R[r], c.S[r] = label, option
        c.tight[option] = True
        c.state[0] = r + 1
    c.inside[label] = True


cdef void _release_row(const Matrix* loss, Core* c, Py_ssize_t s, Py_ssize_t leaving) noexcept nogil:
    """Update the core for a tight row that is released: shrink by a label, or swap it with another row."""
    cdef Py_ssize_t i, j, m, option, r = c.state[0], w = c.most
    cdef double* N = c.N
    cdef double* u = c.u
    cdef double* t = c.t
    c.tight[c.S[s]] = False
    if leaving >= 0:
        m = leaving + 1
        for j in range(r + 1):
            t[j] = N[m * w + j] / u[m]
        for i in range(r + 1):
            if i != m:
                for j in range(r + 1):
                    N[i * w + j] -= u[i] * t[j]
        for j in range(r + 1):  # the last row and column fill the holes
            N[m * w + j] = N[r * w + j]
        for i in range(r + 1):
            N[i * w + s + 1] = N[i * w + r]
        c.inside[c.R[leaving]] = False
        c.R[leaving], c.S[s] = c.R[r - 1], c.S[r - 1]
        c.state[0] = r - 1
    else:
        option = -1 - leaving
        _bordering(loss, c, option)
        for i in range(r + 1):
            N[i * w + s + 1] = u[i] / t[s + 1]
            for j in range(r + 1):
                if j != s + 1:
                    N[i * w + j] -= t[j] * N[i * w + s + 1]
        c.S[s] = option
        c.tight[option] = True


cdef double _polish(const Matrix* loss, Core* c) noexcept nogil:
    """One step of iterative refinement of ``y`` and of ``(v, q_R)``; returns the residual of the latter."""
    cdef Py_ssize_t i, j, m, s, r = c.state[0], w = c.most
    cdef double* N = c.N
    cdef double* y = c.y
    cdef double* u = c.u
    cdef double* t = c.t
    cdef double drift = 0.0, fix
    u[0], t[0] = 1.0, 1.0
    for s in range(r):
        u[0] -= N[(s + 1) * w]
        t[0] += y[s + 1]
        u[s + 1], t[s + 1] = N[0], c.f[c.R[s]] - y[0]
        for m in range(r):
            u[s + 1] -= loss.rows[c.S[s] * c.k + c.R[m]] * N[(m + 1) * w]
            t[s + 1] -= loss.rows[c.S[m] * c.k + c.R[s]] * y[m + 1]
    for j in range(r + 1):
        drift = max(drift, fabs(u[j]))
        for i in range(r + 1):
            y[j] += N[i * w + j] * t[i]
    for j in range(r + 1):
        fix = 0.0
        for i in range(r + 1):
            fix += N[j * w + i] * u[i]
        N[j * w] += fix
    return drift


cdef void optimise(const Matrix* loss, Core* c) noexcept nogil:
    cdef Py_ssize_t i, entering, leaving, k = c.k, rounds
    cdef double step = 0.0, pivot
    _start(loss, c)
    for rounds in range(50 * (k + c.options)):
        entering = _price(loss, c)
        if entering < 0:
            if _polish(loss, c) <= _DRIFT:
                return
            if not _refresh(loss, c):
                c.state[0] = 0
                _start(loss, c)
            continue
        _direction(loss, c, entering)
        leaving = _leaving(loss, c, &step)
        if leaving == c.most:  # only rounding moves along this direction
            return
        pivot = c.u[leaving + 1] if leaving >= 0 else c.rate[-1 - leaving]
        if entering < k:
            _enter_label(loss, c, entering, leaving)
        else:
            _release_row(loss, c, entering - k, leaving)
        c.state[1] += 1
        for i in range(c.options):
            c.slack[i] += step * c.rate[i]
        if pivot < -_STEEP and not _refresh(loss, c):  # N was nearly singular: shed its errors
            c.state[0] = 0
            _start(loss, c)
