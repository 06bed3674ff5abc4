"""The Gibbs distribution over arborescences, ``P(y) = exp(<scores, y>) / Z``: partition function and arc marginals.

``Z`` is the determinant of a Laplacian ([koo2007]_, matrix-tree theorem). Here tokens are eliminated one by one: an arc
``k -> i`` is replaced by arcs from the heads of ``k``, ``w_ij + w_ik w_kj / d_k`` with ``d_k`` the sum of the weights
into ``k``, and ``Z`` is the product of the ``d_k``. Nothing is ever subtracted, so saturated scores do no harm. With a
single root the arcs from the root are left out of ``d_k`` but for the last token. Marginals come from undoing the
eliminations: what flowed over an arc is shared among the paths that it stands for. O(n^3).
"""

from libc.math cimport INFINITY, NAN, exp, isnan, log, log1p
from libc.string cimport memset
from nashlearn.kernels.checks cimport DOUBLE, cube, cube_out, extent, vector_out
from nashlearn.kernels.scratch cimport Scratch, doubles, indices, marks

cdef double _TINY = 1e-290  # a weight below it is about to lose digits: logarithms are used instead


cdef struct Weights:
    char nothing


cdef struct Logarithms:
    char nothing


ctypedef fused terms:  # what numbers stand for; both kinds of arithmetic are compiled
    Weights
    Logarithms


cdef struct Desk:
    Py_ssize_t n
    bint single_root
    double* A  # (n, n + 1) arcs between tokens that are left
    double* pi  # (n, n + 1) shares of the heads of a token when it went
    double* ratio  # (n, n, n + 1) by step: how much of an arc stood for a path through the token that went
    double* total  # (n) what enters a token
    double* share  # (n + 1)
    Py_ssize_t* order  # (n)
    unsigned char* active  # (n)


cdef size_t _lay(Desk* desk, Py_ssize_t n, size_t at) noexcept nogil:
    desk.n = n
    desk.A, desk.pi, desk.ratio = doubles(&at, n * (n + 1)), doubles(&at, n * (n + 1)), doubles(&at, n * n * (n + 1))
    desk.total, desk.share, desk.order = doubles(&at, n), doubles(&at, n + 1), indices(&at, n)
    desk.active = marks(&at, n)
    return at


cdef inline double _nothing(terms* kind) noexcept nogil:
    return 0.0 if terms is Weights else -INFINITY


cdef inline double _plus(double a, double b, terms* kind) noexcept nogil:
    if terms is Weights:
        return a + b
    else:
        if a < b:
            a, b = b, a
        return a if b == -INFINITY else a + log1p(exp(b - a))


cdef inline double _times(double a, double b, terms* kind) noexcept nogil:
    return a * b if terms is Weights else a + b


cdef inline double _over(double a, double b, terms* kind) noexcept nogil:
    return a / b if terms is Weights else a - b


cdef inline double _weight(double a, terms* kind) noexcept nogil:
    return a if terms is Weights else exp(a)


cdef inline double _log(double a, terms* kind) noexcept nogil:
    return log(a) if terms is Weights else a


cdef inline bint _faint(double a, terms* kind) noexcept nogil:
    """Whether a number is about to lose digits."""
    return a < _TINY if terms is Weights else False


cdef double _fill(const double* scores, Desk* desk, terms* kind) noexcept nogil:
    """Arcs relative to the best of each token, whose sum is returned; ``-inf`` for no head, NaN for faint ones."""
    cdef Py_ssize_t i, h, n = desk.n
    cdef double top, total = 0.0
    cdef const double* row
    cdef double* arcs
    for i in range(n):
        row, arcs, top = scores + i * (n + 1), desk.A + i * (n + 1), -INFINITY
        desk.active[i] = True
        for h in range(n + 1):
            if h != i + 1:
                top = max(top, row[h])
        if top == -INFINITY:
            return -INFINITY
        total += top
        for h in range(n + 1):
            arcs[h] = _nothing(kind)
            if h != i + 1 and row[h] > -INFINITY:
                arcs[h] = exp(row[h] - top) if terms is Weights else row[h] - top
                if _faint(arcs[h], kind):
                    return NAN
    return total


cdef Py_ssize_t _pick(Desk* desk, bint with_root, terms* kind) noexcept nogil:
    """The active token with the largest sum of weights, -1 where there is none; all sums into ``desk.total``."""
    cdef Py_ssize_t i, j, n = desk.n, at = -1
    cdef double total, best = -INFINITY
    cdef const double* arcs
    for i in range(n):
        if desk.active[i]:
            arcs = desk.A + i * (n + 1)
            total = arcs[0] if with_root else _nothing(kind)
            for j in range(n):
                if desk.active[j]:
                    total = _plus(total, arcs[j + 1], kind)
            desk.total[i] = total
            if total > best:
                best, at = total, i
    return at


cdef bint _bypass(Desk* desk, Py_ssize_t t, Py_ssize_t k, terms* kind) noexcept nogil:
    """Replace the arcs from token ``k``, the one of step ``t``; False where numbers are faint."""
    cdef Py_ssize_t i, h, n = desk.n
    cdef double f, via, nothing = _nothing(kind)
    cdef double* arcs
    cdef double* ratio
    for i in range(n):
        if not desk.active[i]:
            continue
        arcs, ratio = desk.A + i * (n + 1), desk.ratio + (t * n + i) * (n + 1)
        f = arcs[k + 1]
        for h in range(n + 1):
            ratio[h] = 0.0
            if f > nothing and desk.share[h] > nothing and h != i + 1:
                via = _times(f, desk.share[h], kind)
                if _faint(via, kind):
                    return False
                arcs[h] = _plus(arcs[h], via, kind)
                ratio[h] = _weight(_over(via, arcs[h], kind), kind)
    return True


cdef double _eliminate(const double* scores, Desk* desk, terms* kind) noexcept nogil:
    """Forward pass; ``log Z``, ``-inf`` where there is no tree, NaN where the range of weights does not suffice."""
    cdef Py_ssize_t t, h, k, n = desk.n
    cdef double d, log_z = _fill(scores, desk, kind), nothing = _nothing(kind)
    if isnan(log_z) or log_z == -INFINITY:
        return log_z
    for t in range(n):
        k = _pick(desk, not desk.single_root or t == n - 1, kind)
        d = desk.total[k] if k >= 0 else -INFINITY
        if d <= nothing:
            return -INFINITY
        desk.order[t] = k
        desk.active[k] = False
        log_z += _log(d, kind)
        for h in range(n + 1):
            desk.share[h] = nothing
            if h == 0 or desk.active[h - 1]:
                desk.share[h] = _over(desk.A[k * (n + 1) + h], d, kind)
            desk.pi[k * (n + 1) + h] = _weight(desk.share[h], kind)
        if not _bypass(desk, t, k, kind):
            return NAN
    return log_z


cdef double _undo(Desk* desk, Py_ssize_t t, Py_ssize_t k, double* marginal) noexcept nogil:
    """Share what flows over arcs with the paths through token ``k`` that they stood for; what ``k``'s arcs get."""
    cdef Py_ssize_t i, h, n = desk.n
    cdef double part, through, children = 0.0
    cdef double* own
    cdef const double* ratio
    for i in range(n):
        if not desk.active[i]:
            continue
        own, ratio, through = marginal + i * (n + 1), desk.ratio + (t * n + i) * (n + 1), 0.0
        for h in range(n + 1):
            part = own[h] * ratio[h]
            if part > 0.0:
                own[h] -= part
                marginal[k * (n + 1) + h] += part
                through += part
        own[k + 1] = through
        children += through
    return children


cdef void _restore(Desk* desk, double* marginal) noexcept nogil:
    """Backward pass: marginals from the shares of the eliminated paths."""
    cdef Py_ssize_t t, k, h, a, n = desk.n
    cdef double alone
    cdef double* own
    cdef const double* pi
    memset(marginal, 0, n * (n + 1) * sizeof(double))
    for t in range(n - 1, -1, -1):
        k = desk.order[t]
        alone = 1.0 - _undo(desk, t, k, marginal)
        own, pi = marginal + k * (n + 1), desk.pi + k * (n + 1)
        if not desk.single_root or t == n - 1:
            own[0] += alone * pi[0]
        for h in range(1, n + 1):
            own[h] += alone * pi[h]
        desk.active[k] = True
    for a in range(n * (n + 1)):
        marginal[a] = min(max(marginal[a], 0.0), 1.0)


def gibbs_trees(scores, bint single_root, log_z, marginal):
    """``log Z`` of each of a batch (b, n, n + 1) into ``log_z`` (b), arc marginals into ``marginal`` (b, n, n + 1).

    ``-inf``, and no marginals, where there is no tree. Cost: O(n^3) time and room.
    """
    cdef Py_ssize_t i, b = extent(scores, "scores", 0), n = extent(scores, "scores", 1), size = n * (n + 1)
    cdef const double* given = <const double*> cube(scores, "scores", DOUBLE, b, n, n + 1)
    cdef double* logs = <double*> vector_out(log_z, "log_z", DOUBLE, b)
    cdef double* shares = <double*> cube_out(marginal, "marginal", DOUBLE, b, n, n + 1)
    cdef Desk desk
    cdef Scratch memory = Scratch(_lay(&desk, n, 0))
    desk.single_root = single_root
    _lay(&desk, n, <size_t> memory.at)
    with nogil:
        for i in range(b):
            logs[i] = _eliminate[Weights](given + i * size, &desk, NULL)
            if isnan(logs[i]):
                logs[i] = _eliminate[Logarithms](given + i * size, &desk, NULL)
            if logs[i] > -INFINITY:
                _restore(&desk, shares + i * size)
