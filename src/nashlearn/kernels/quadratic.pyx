"""The proximal step of any loss matrix, by a primal active-set method in the core of the game.

    max_q  <g, q> - a/2 |q|^2 + min_i (L q)_i   over the simplex

has few labels in its support ``R`` and few tight rows ``S``. Given both, the optimum lies where ``1'q = 1``
and ``(L_t - L_s) q = 0`` for the rows ``t`` of ``S`` and its first, ``s``; with ``W`` an orthonormal basis of
those normals on ``R`` and ``h = g + L_s``,

    q_R + d,    d = (I - W W') (h - a q_R) / a,

is that optimum from any ``q`` that meets the equations; its multipliers ``p_S`` solve a triangular system.
Each step costs O((|S|^2 + options) |R|). No step lowers the objective, so an ascent may stop early; after a
run of steps without length the first candidate in a fixed order is taken instead of the steepest, as in
Bland's rule.
"""

from libc.math cimport INFINITY, fabs, sqrt
from libc.string cimport memset
from nashlearn.kernels.checks cimport DOUBLE, extent, matrix
from nashlearn.kernels.loss cimport Loss
from nashlearn.kernels.scratch cimport doubles, indices, marks

cdef double _EPS = 1e-13
cdef double _RATE = 1e-12  # a rate below this, relative to the direction, blocks nothing,
cdef double _NOISE = 1e-14  # nor one below this, relative to the simplex
cdef double _ARRIVED = 1e-13  # what is left of the way is rounding
cdef double _DEPENDENT = 1e-11  # a normal with less than this share of its own is one of the others
cdef enum:
    _PATIENCE = 12  # steps without length before the fixed order


cdef class MatrixLoss(Loss):
    """A loss whose proximal step is that of its matrix ``L``, options by labels."""

    cdef int take(self, object L) except -1:
        self.options, self.k = extent(L, "L", 0), extent(L, "L", 1)
        if self.options < 1 or self.k < 1:
            raise ValueError(f"L must have at least one row and one column; got shape {L.shape}")
        self.entries = <const double*> matrix(L, "L", DOUBLE, self.options, self.k)
        self.L = L
        return 0

    cdef size_t room_size(self) noexcept nogil:
        return prox_room(self.options, self.k)

    cdef void prox(self, Py_ssize_t m, const double* g, double a, double* q, double* p, void* room) noexcept nogil:
        cost_prox(self.options, self.k, self.entries, g, a, q, p, room)

    cdef Py_ssize_t tangent(
        self, double a, const double* q, const unsigned char* tight, double* jacobian, void* room
    ) noexcept nogil:
        return cost_tangent(self.options, self.k, self.entries, a, q, tight, jacobian, room)


cdef Prox new_prox(Py_ssize_t options, Py_ssize_t k, size_t* at) noexcept nogil:
    cdef Prox c
    c.options, c.k, c.most = options, k, min(options, k) + 1
    c.W, c.T = doubles(at, c.most * k), doubles(at, c.most * c.most)
    c.b, c.p_S = doubles(at, c.most), doubles(at, c.most)
    c.d, c.slack, c.fall = doubles(at, k), doubles(at, options), doubles(at, options)
    c.R, c.S = indices(at, k), indices(at, options + 1)
    c.inside, c.tight = marks(at, k), marks(at, options)
    return c


cdef size_t prox_room(Py_ssize_t options, Py_ssize_t k) noexcept nogil:
    cdef size_t at = 0
    new_prox(options, k, &at)
    return at


cdef void _deflate(
    const double* W, Py_ssize_t k, Py_ssize_t m, double* x, Py_ssize_t r, double* coefficient
) noexcept nogil:
    """Remove from ``x`` its components along the first ``m`` rows of ``W``; add them to ``coefficient``."""
    cdef Py_ssize_t i, j
    cdef double dot
    for i in range(m):
        dot = 0.0
        for j in range(r):
            dot += W[i * k + j] * x[j]
        coefficient[i] += dot
        for j in range(r):
            x[j] -= dot * W[i * k + j]


cdef double _norm(const double* x, Py_ssize_t r) noexcept nogil:
    cdef double total = 0.0
    cdef Py_ssize_t j
    for j in range(r):
        total += x[j] * x[j]
    return sqrt(total)


cdef Py_ssize_t independent_normals(
    const double* L, Prox* c, Py_ssize_t r, Py_ssize_t known, Py_ssize_t s
) noexcept nogil:
    cdef Py_ssize_t j, t, k = c.k
    cdef double before
    cdef double* w
    cdef double* T
    if known == 0:
        for j in range(r):
            c.W[j] = 1.0 / sqrt(<double> r)
    for t in range(max(known, 1), s):
        if t >= r:
            return t
        w, T = c.W + t * k, c.T + t * c.most
        for j in range(r):
            w[j] = L[c.S[t] * k + c.R[j]] - L[c.S[0] * k + c.R[j]]
        before = _norm(w, r)
        memset(T, 0, t * sizeof(double))
        _deflate(c.W, k, t, w, r, T)
        _deflate(c.W, k, t, w, r, T)  # twice is enough
        T[t] = _norm(w, r)
        if T[t] <= _DEPENDENT * before:
            return t
        for j in range(r):
            w[j] /= T[t]
    return s


cdef double _core_solution(
    const double* L, const double* g, double a, Prox* c, Py_ssize_t r, Py_ssize_t s, const double* q, double* spread
) noexcept nogil:
    """Direction ``d`` to the optimum with support ``R`` and tight rows ``S``, signs ignored, and its ``p_S``.

    Returns the multiplier of ``1'q = 1``; the spread of the scores on ``R`` into ``spread``.
    """
    cdef double top = -INFINITY, low = INFINITY, shift
    cdef Py_ssize_t j, t, m, k = c.k
    cdef double* d = c.d
    cdef double* p_S = c.p_S
    for j in range(r):
        d[j] = g[c.R[j]] + L[c.S[0] * k + c.R[j]]
        top, low = max(top, d[j]), min(low, d[j])
    for j in range(r):
        d[j] -= top + a * q[c.R[j]]
    memset(c.b, 0, s * sizeof(double))
    _deflate(c.W, k, s, d, r, c.b)
    _deflate(c.W, k, s, d, r, c.b)
    for j in range(r):
        d[j] = d[j] / a if s < r else 0.0
    p_S[0] = 1.0
    shift = c.b[0]
    for t in range(s - 1, 0, -1):
        p_S[t] = -c.b[t]
        for m in range(t + 1, s):
            p_S[t] -= p_S[m] * c.T[m * c.most + t]
        p_S[t] /= c.T[t * c.most + t]
        p_S[0] -= p_S[t]
        shift += p_S[t] * c.T[t * c.most]
    spread[0] = top - low
    return top + shift / sqrt(<double> r)


cdef void _slacks(const double* L, Prox* c, Py_ssize_t r, const double* q) noexcept nogil:
    """Slack of each row over ``L_S[0] q`` and how fast it falls along ``d``; tight rows do not move."""
    cdef double base = 0.0, rate = 0.0
    cdef Py_ssize_t i, j, k = c.k
    for j in range(r):
        base += L[c.S[0] * k + c.R[j]] * q[c.R[j]]
        rate += L[c.S[0] * k + c.R[j]] * c.d[j]
    for i in range(c.options):
        c.slack[i], c.fall[i] = -base, rate
        if c.tight[i]:
            c.fall[i] = 0.0
            continue
        for j in range(r):
            c.slack[i] += L[i * k + c.R[j]] * q[c.R[j]]
            c.fall[i] -= L[i * k + c.R[j]] * c.d[j]


cdef Py_ssize_t _blocking(
    Prox* c, Py_ssize_t r, const double* q, double length, double scale, bint ordered, double* step
) noexcept nogil:
    """Largest step in [0, 1] along ``d``, into ``step``, and what stops it: label < 0, row > 0, or 0.

    The first pass lets each constraint give way by a rounding error; the second takes the fastest of those
    that would stop within (the first of them): nearly dependent constraints stay out of the core.
    """
    cdef double rounding = _RATE * length + _NOISE, most = 1.0, speed = 0.0
    cdef double* d = c.d
    cdef Py_ssize_t i, j, stop = 0
    cdef bint better
    for j in range(r):
        if -d[j] > rounding:
            most = min(most, (q[c.R[j]] + _NOISE) / -d[j])
    for i in range(c.options):
        if c.fall[i] > rounding * scale:
            most = min(most, (max(c.slack[i], 0.0) + _NOISE * scale) / c.fall[i])
    step[0] = 1.0
    if most == 1.0:
        return stop
    for j in range(r):
        if -d[j] > rounding and q[c.R[j]] <= -d[j] * most:
            better = (stop == 0 or c.R[j] < c.R[-stop - 1]) if ordered else -d[j] > speed
            if better:
                step[0], stop, speed = q[c.R[j]] / -d[j], -(j + 1), -d[j]
    for i in range(c.options):
        if c.fall[i] > rounding * scale and c.slack[i] <= c.fall[i] * most:
            better = stop == 0 if ordered else c.fall[i] > speed * scale
            if better:
                step[0], stop, speed = max(c.slack[i], 0.0) / c.fall[i], i + 1, c.fall[i] / scale
    step[0] = min(step[0], 1.0)
    return stop


cdef Py_ssize_t _worst_row(const Prox* c, Py_ssize_t s, double tol, bint ordered) noexcept nogil:
    """Position in ``S`` of the most negative multiplier (of the first row with one), or -1."""
    cdef double worst = -tol
    cdef Py_ssize_t t, drop = -1
    for t in range(s):
        if c.p_S[t] < worst and not (ordered and drop >= 0 and c.S[t] > c.S[drop]):
            drop = t
            worst = -tol if ordered else c.p_S[t]
    return drop


cdef Py_ssize_t _entering(
    const double* L, const double* g, const Prox* c, Py_ssize_t s, double shift, double tol, bint ordered
) noexcept nogil:
    """The label outside the support whose mass would gain most (the first that gains), or -1."""
    cdef double best = tol, gain
    cdef Py_ssize_t j, t, label = -1
    for j in range(c.k):
        if not c.inside[j]:
            gain = g[j] - shift
            for t in range(s):
                gain += c.p_S[t] * L[c.S[t] * c.k + j]
            if gain > best:
                best, label = gain, j
                if ordered:
                    break
    return label


cdef Py_ssize_t _tight_rows(const double* L, Prox* c, Py_ssize_t r, const double* q, double* scale) noexcept nogil:
    """The rows with the least cost at ``q``, the first of them first, into ``S``; the largest entry met into ``scale``.

    A step that begins near its end knows all of its core from the start.
    """
    cdef double lowest = INFINITY, total
    cdef Py_ssize_t i, j, s = 1
    scale[0], c.S[0] = 0.0, 0  # the first of them where no cost is a number
    memset(c.tight, 0, c.options)
    for i in range(c.options):
        total = 0.0
        for j in range(r):
            total += L[i * c.k + c.R[j]] * q[c.R[j]]
            scale[0] = max(scale[0], fabs(L[i * c.k + c.R[j]]))
        c.slack[i] = total
        if total < lowest:
            lowest, c.S[0] = total, i
    if not scale[0] > 0.0:
        scale[0] = 1.0
    c.tight[c.S[0]] = True
    for i in range(c.options):
        if s < r and not c.tight[i] and c.slack[i] - lowest <= _EPS * scale[0]:
            c.S[s], c.tight[i] = i, True
            s += 1
    return s


cdef Py_ssize_t _support(Prox* c, const double* q) noexcept nogil:
    """The labels that ``q`` plays, into ``R``."""
    cdef Py_ssize_t j, r = 0
    memset(c.inside, 0, c.k)
    for j in range(c.k):
        if q[j] > 0.0:
            c.R[r], c.inside[j] = j, True
            r += 1
    return r


cdef void _shares(const Prox* c, Py_ssize_t s, double* p) noexcept nogil:
    """The multipliers of ``S`` as a strategy of the predictor."""
    cdef double mass = 0.0
    cdef Py_ssize_t t
    memset(p, 0, c.options * sizeof(double))
    for t in range(s):
        c.p_S[t] = max(c.p_S[t], 0.0)
        mass += c.p_S[t]
    for t in range(s):
        p[c.S[t]] = c.p_S[t] / mass if mass > 0.0 else 1.0 / s


cdef void cost_prox(
    Py_ssize_t options, Py_ssize_t k, const double* L, const double* g, double a, double* q, double* p, void* room
) noexcept nogil:
    cdef size_t at = <size_t> room
    cdef Prox c = new_prox(options, k, &at)
    cdef Py_ssize_t j, t, r = _support(&c, q), s, known = 0, idle = 0, stop, out, drop, label, independent, rounds
    cdef double scale = 0.0, shift = 0.0, spread = 0.0, step, length, tol
    cdef bint ordered
    s = _tight_rows(L, &c, r, q, &scale)
    for rounds in range(50 * (k + options)):
        independent = independent_normals(L, &c, r, known, s)
        known = independent
        if independent < s:  # it blocked by rounding: leave it out, and alone until the core changes
            s -= 1
            c.S[independent] = c.S[s]
            continue
        shift = _core_solution(L, g, a, &c, r, s, q, &spread)
        tol, ordered = _EPS * (scale + spread + a), idle > _PATIENCE
        length = 0.0
        for j in range(r):
            length = max(length, fabs(c.d[j]))
        step, stop = 1.0, 0
        if length > _ARRIVED:
            _slacks(L, &c, r, q)
            stop = _blocking(&c, r, q, length, scale, ordered, &step)
        for j in range(r):
            q[c.R[j]] = max(q[c.R[j]] + step * c.d[j], 0.0)
        idle = idle + 1 if step * length <= 10.0 * _ARRIVED else 0
        if stop > 0:
            c.S[s], c.tight[stop - 1] = stop - 1, True
            s += 1
            continue
        if stop < 0:
            r -= 1
            out = c.R[-stop - 1]
            q[out], c.inside[out], c.R[-stop - 1] = 0.0, False, c.R[r]
            known = 0
        else:
            drop = _worst_row(&c, s, tol / scale, ordered)
            label = _entering(L, g, &c, s, shift, tol, ordered) if drop < 0 else -1
            if drop >= 0:
                s, known = s - 1, drop
                c.S[drop] = c.S[s]
            elif label >= 0:
                c.R[r], c.inside[label] = label, True
                r, known = r + 1, 0
            else:
                break
        memset(c.tight, 0, options)
        for t in range(s):
            c.tight[c.S[t]] = True
    _shares(&c, s, p)


cdef Py_ssize_t cost_tangent(
    Py_ssize_t options, Py_ssize_t k, const double* L, double a, const double* q, const unsigned char* tight,
    double* jacobian, void* room
) noexcept nogil:
    cdef size_t at = <size_t> room
    cdef Prox c = new_prox(options, k, &at)
    cdef Py_ssize_t i, j, t, r = _support(&c, q), s = 0, independent
    cdef double entry
    for i in range(options):
        if tight[i]:
            c.S[s] = i
            s += 1
    independent = independent_normals(L, &c, r, 0, s)
    while independent < s:  # rows of ``p`` may depend on each other once labels have left
        s -= 1
        c.S[independent] = c.S[s]
        independent = independent_normals(L, &c, r, independent, s)
    if s == r:
        return 0
    memset(jacobian, 0, k * k * sizeof(double))
    for i in range(r):
        for j in range(r):
            entry = 1.0 if i == j else 0.0
            for t in range(s):
                entry -= c.W[t * k + i] * c.W[t * k + j]
            jacobian[c.R[i] * k + c.R[j]] = entry / a
    return r
