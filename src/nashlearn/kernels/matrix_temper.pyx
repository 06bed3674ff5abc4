"""The tempered game of any matrix, by Newton's method on the options in play.

    min_p  mu log sum exp((f + L' p) / mu)   over the simplex

has the gradient ``c = L q`` and the Hessian ``L C L' / mu``, with ``q = softmax((f + L' p) / mu)`` and
``C = diag(q) - q q'``. In play are the options that ``p`` takes and the cheapest against ``q``. With the heaviest of
them eliminated, ``D`` the differences of the others' rows from its own and ``D C D' = T T'``, the step is

    x = -mu (T T')^-1 D q;

``T`` comes from an orthonormal basis of the rows of ``D`` in the metric ``C``, not from ``D C D'``, which would square
their condition. A row that depends on those before either changes nothing, or gives a direction without curvature, which
is followed as far as it descends. Steps end where an option's share does; their length is a root of
``<L' d, q>``, which rises along the way, in a bracket. Every step descends, and every option whose share is positive
can move, so no set of options returns. The gap is ``<p, c> - min c``.

The scale of the matrix is 1 here, as in ``nashlearn.kernels.core_simplex``. Cost of a step: O(s^2 k + options k) for
``s`` options in play; most rows at ``mu >= 0.3`` have one or two.
"""

from libc.math cimport INFINITY, fabs, sqrt
from libc.string cimport memcpy, memset
from nashlearn.kernels.core_simplex cimport Matrix
from nashlearn.kernels.scratch cimport doubles, indices
from nashlearn.kernels.simd cimport simd_dot, simd_max, simd_min, simd_sum
from nashlearn.kernels.vectors cimport vec_add, vec_exponentials, vec_scale

cdef double _CLOSED = 1e-13  # a gap that is as good as none,
cdef double _ROUNDING = 2e-16  # and what scores are rounded by, which q feels over mu
cdef double _FLAT = 1e-8  # a row with less than this of its own has no curvature that rounding would leave
cdef double _LEVEL = 1e-14  # a slope below this leads nowhere
cdef double _NEAR = 0.25  # the share of a step by which its length may miss the root
cdef enum:
    _TRIALS = 60  # of a length
    _BLIND = 4  # steps that rounding hides the slope of


cdef Temper new_temper(Py_ssize_t options, Py_ssize_t k, size_t* at) noexcept nogil:
    cdef Temper t
    t.k, t.options, t.most, t.s, t.lowest = k, options, min(options, k), 0, 0
    t.f, t.z, t.q = doubles(at, k), doubles(at, k), doubles(at, k)
    t.root, t.y, t.trial = doubles(at, k), doubles(at, k), doubles(at, k)
    t.c, t.x, t.w, t.u = doubles(at, options), doubles(at, options + 1), doubles(at, t.most), doubles(at, t.most)
    t.W, t.T = doubles(at, t.most * k), doubles(at, (options + 1) * t.most)
    t.S, t.basis = indices(at, options + 1), indices(at, options + 1)
    return t


cdef double respond(const Matrix* loss, Temper* t, double m, const double* p) noexcept nogil:
    cdef Py_ssize_t i, j, k = t.k
    cdef double gap = 0.0
    t.s = 0
    memcpy(t.z, t.f, k * sizeof(double))
    for i in range(t.options):
        if p[i] > 0.0:
            vec_add(loss.rows + i * k, p[i], k, t.z)
            t.S[t.s] = i
            t.s += 1
    vec_exponentials(t.z, simd_max(t.z, k, -INFINITY), m, k, t.q)
    vec_scale(t.q, 1.0 / simd_sum(t.q, k), k)
    memset(t.c, 0, t.options * sizeof(double))
    for j in range(k):
        vec_add(loss.columns + j * t.options, t.q[j], t.options, t.c)
    t.lowest = 0
    for i in range(1, t.options):
        if t.c[i] < t.c[t.lowest]:
            t.lowest = i
    for i in range(t.s):
        gap += p[t.S[i]] * (t.c[t.S[i]] - t.c[t.lowest])
    return gap


cdef inline double _normalised(double* a, Py_ssize_t k, double least) noexcept nogil:
    """Make ``a`` a unit vector and return its length, or 0 where that does not exceed ``least``."""
    cdef double length = sqrt(simd_dot(a, a, k))
    if not length > least:
        return 0.0
    vec_scale(a, 1.0 / length, k)
    return length


cdef double _orthogonal(
    const Matrix* loss, const Temper* t, Py_ssize_t i, Py_ssize_t rank, double shift, double* T
) noexcept nogil:
    """Write into ``W[rank]`` what row ``i`` of ``D`` has of its own, and its coefficients into ``T``.

    Returns the length of the former, 0 where the row depends on those before.
    """
    cdef Py_ssize_t j, b, k = t.k
    cdef double* a = t.W + rank * k
    cdef const double* row = loss.rows + t.S[i] * k
    cdef const double* heaviest = loss.rows + t.S[0] * k
    for j in range(k):
        a[j] = t.root[j] * ((row[j] - heaviest[j]) - shift)
    for b in range(rank):
        T[b] = simd_dot(t.W + b * k, a, k)
        vec_add(t.W + b * k, -T[b], k, a)
    return _normalised(a, k, _FLAT)


cdef void _back(const Temper* t, Py_ssize_t n) noexcept nogil:
    """The steps ``x`` of the first ``n`` options in play, those from ``n`` on being known, from ``u``, which is lost."""
    cdef Py_ssize_t i, b, own
    for i in range(n - 1, 0, -1):
        own = t.basis[i]
        t.x[i] = 0.0
        if own >= 0:
            t.x[i] = t.u[own] / t.T[i * t.most + own]
            for b in range(own):
                t.u[b] -= t.T[i * t.most + b] * t.x[i]


cdef void _direction(const Matrix* loss, Temper* t, double m, bint enters) noexcept nogil:
    """Newton's direction ``x`` of the options in play, of which the last may have no share yet; or one without curvature."""
    cdef Py_ssize_t i, b, n = t.s, rank = 0
    cdef double* T = t.T
    cdef double own, rest, largest, least = _LEVEL * m, base = t.c[t.S[0]]
    for i in range(1, n):
        T = t.T + i * t.most
        own = 0.0
        if rank < t.most:
            own = _orthogonal(loss, t, i, rank, t.c[t.S[i]] - base, T)
        rest = -m * (t.c[t.S[i]] - base)
        for b in range(rank):
            rest -= T[b] * t.w[b]
        t.basis[i] = -1
        if own > 0.0:
            T[rank], t.w[rank], t.basis[i] = own, rest / own, rank
            rank += 1
        elif fabs(rest) > least and not (enters and i == n - 1 and rest < 0.0):
            largest = 1.0
            for b in range(n):
                t.x[b] = 0.0
            t.x[i] = 1.0 if rest > 0.0 else -1.0
            for b in range(rank):
                t.u[b] = -T[b] * t.x[i]
            _back(t, i)
            for b in range(1, i):
                largest = max(largest, fabs(t.x[b]))
            if fabs(rest) > least * largest:
                return
    memcpy(t.u, t.w, rank * sizeof(double))
    _back(t, n)
    if enters and not t.x[n - 1] > 0.0:  # it would leave at once: the others come first
        memcpy(t.u, t.w, rank * sizeof(double))
        t.x[n - 1] = 0.0
        _back(t, n - 1)


cdef double _slope(const Temper* t, double m, double length, double* curvature) noexcept nogil:
    """``<y, q>`` after a step of some length, and how fast it rises there."""
    cdef Py_ssize_t j, k = t.k
    cdef double* q = t.trial
    cdef double mass = 0.0, first = 0.0, second = 0.0, top, weight
    for j in range(k):
        t.root[j] = t.z[j] + length * t.y[j]
    top = simd_max(t.root, k, -INFINITY)
    vec_exponentials(t.root, top, m, k, q)
    for j in range(k):
        weight = q[j] * t.y[j]
        mass += q[j]
        first += weight
        second += weight * t.y[j]
    first /= mass
    curvature[0] = max(second / mass - first * first, 0.0) / m
    return first


cdef double _length(const Temper* t, double m, double most, double near, double left) noexcept nogil:
    """How far to go, at most ``most``: Newton's method in a bracket for the root of the slope.

    It ends within the share ``near`` of the root, or where the slope has come down to ``left``.
    """
    cdef double low = 0.0, high = INFINITY, here = min(1.0, most), curvature = 0.0, risen, next
    cdef Py_ssize_t trial
    for trial in range(_TRIALS):
        risen = _slope(t, m, here, &curvature)
        if fabs(risen) <= max(left, near * here * curvature) or (risen < 0.0 and here == most):
            return here
        if risen > 0.0:
            high = here
        else:
            low = here
        next = here - risen / curvature if curvature > 0.0 else high
        if high == INFINITY:
            next = min(max(next, 2.0 * here), 16.0 * here, most)
        elif not low < next < high:
            next = 0.5 * (low + high)
        if next == here:
            return here
        here = next
    return low if low > 0.0 else here


cdef Py_ssize_t _room_to_move(const Temper* t, const double* p, double* most) noexcept nogil:
    """How far ``x`` leads inside the simplex, and the option in play that ends it; 0 where nothing does or the first."""
    cdef Py_ssize_t i, stop = 0
    cdef double total = 0.0
    for i in range(1, t.s):
        total += t.x[i]
    t.x[0] = -total
    most[0] = INFINITY
    for i in range(t.s):
        if t.x[i] < 0.0 and p[t.S[i]] < -t.x[i] * most[0]:
            most[0] = p[t.S[i]] / -t.x[i]
            stop = i
    return stop


cdef void _move(const Temper* t, double length, double most, Py_ssize_t stop, double* p) noexcept nogil:
    cdef Py_ssize_t i
    cdef double rest = 1.0
    for i in range(1, t.s):
        p[t.S[i]] = max(p[t.S[i]] + length * t.x[i], 0.0)
        if length == most and i == stop:
            p[t.S[i]] = 0.0
        rest -= p[t.S[i]]
    p[t.S[0]] = 0.0 if length == most and stop == 0 else max(rest, 0.0)


cdef void improve(const Matrix* loss, Temper* t, double m, double gap, double* p) noexcept nogil:
    cdef Py_ssize_t i, j, k = t.k, stop, heaviest, rounds, blind = 0
    cdef double closed = _CLOSED + _ROUNDING / m, most = 0.0, slope, length, noise
    cdef bint enters
    for rounds in range(50 + 10 * t.options):
        if gap <= closed:
            return
        heaviest = 0
        for i in range(1, t.s):
            if p[t.S[i]] > p[t.S[heaviest]]:
                heaviest = i
        t.S[0], t.S[heaviest] = t.S[heaviest], t.S[0]
        enters = not p[t.lowest] > 0.0
        if enters:
            t.S[t.s] = t.lowest
            t.s += 1
        for j in range(k):
            t.root[j] = sqrt(t.q[j])
        _direction(loss, t, m, enters)
        stop = _room_to_move(t, p, &most)
        memset(t.y, 0, k * sizeof(double))
        for i in range(t.s):
            if t.x[i] != 0.0:
                vec_add(loss.rows + t.S[i] * k, t.x[i], k, t.y)
        slope = simd_dot(t.y, t.q, k)
        noise = 4.0 * _ROUNDING * max(simd_max(t.y, k, 0.0), -simd_min(t.y, k, 0.0))
        if slope < -noise:
            length = _length(t, m, most, 0.0 if t.s == 2 else _NEAR, 0.25 * closed * fabs(t.x[1]) if t.s == 2 else noise)
        elif blind < _BLIND:
            length, blind = min(1.0, most), blind + 1
        else:
            return
        _move(t, length, most, stop, p)
        gap = respond(loss, t, m, p)


cdef void turn(const Matrix* loss, Temper* t, double mu, const double* q, const double* p, double* v) noexcept nogil:
    cdef Py_ssize_t i, j, k = t.k, rank = 0
    cdef double mean = 0.0, base = 0.0, cost, own
    t.s = 0
    for j in range(k):
        mean += q[j] * v[j]
        t.root[j] = sqrt(q[j])
    for j in range(k):
        v[j] = t.root[j] * (v[j] - mean)
    for i in range(t.options):
        if p[i] > 0.0:
            t.S[t.s] = i
            t.s += 1
    for i in range(t.s):
        cost = simd_dot(loss.rows + t.S[i] * k, q, k)
        if i == 0:
            base = cost
        elif rank < t.most:
            own = _orthogonal(loss, t, i, rank, cost - base, t.T)
            if own > 0.0:
                vec_add(t.W + rank * k, -simd_dot(t.W + rank * k, v, k), k, v)
                rank += 1
    for j in range(k):
        v[j] *= t.root[j] / mu
