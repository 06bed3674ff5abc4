"""The tempered game of any matrix, by Newton's method on the options in play.

    min_p  mu log sum exp((f + L' p) / mu)   over the simplex

has the gradient ``c = L q`` and the Hessian ``L C L' / mu``, with ``q = softmax((f + L' p) / mu)`` and
``C = diag(q) - q q'``. In play are the options that ``p`` takes and the cheapest against ``q``. With the heaviest of
them eliminated, ``D`` the differences of the others' rows from its own and ``D C D' = T T'``, the step is

    x = -mu (T T')^-1 D q;

``T`` comes from an orthonormal basis of the rows of ``D`` in the metric ``C``, not from ``D C D'``, which would square
their condition. A row that depends on those before changes nothing, or gives a direction without curvature, which is
followed as far as it descends. Steps end where an option's share does; their length is a root of
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
cdef double _ROUNDING = 2e-17  # and what rounding leaves of it times m, since q feels that of scores over m
cdef double _NOISE = 8e-16  # of a slope, relative to the largest of its terms
cdef double _FLAT = 1e-8  # a row with less than this of its own has no curvature that rounding would leave
cdef double _LEVEL = 1e-14  # a slope below this leads nowhere
cdef double _NEAR = 0.25  # the share of a step by which its length may miss the root,
cdef double _RISEN = 0.1  # and that of its slope that may be left beyond it
cdef double _TRUSTED = 1e-5  # the share of m that a last step of Halley's may have
cdef enum:
    _TRIALS = 60  # of a length
    _BLIND = 4  # steps that rounding hides the slope of


cdef Temper new_temper(Py_ssize_t options, Py_ssize_t k, size_t* at) noexcept nogil:
    cdef Temper t
    t.k, t.options, t.most, t.s, t.lowest = k, options, min(options, k), 0, 0
    t.top, t.mass = 0.0, 1.0
    t.f, t.z, t.q = doubles(at, k), doubles(at, k), doubles(at, k)
    t.root, t.y, t.trial = doubles(at, k), doubles(at, k), doubles(at, k)
    t.c, t.x, t.w, t.u = doubles(at, options), doubles(at, options + 1), doubles(at, t.most), doubles(at, t.most)
    t.W, t.T = doubles(at, t.most * k), doubles(at, (options + 1) * t.most)
    t.S, t.basis = indices(at, options + 1), indices(at, options + 1)
    return t


cdef double respond(const Matrix* loss, Temper* t, double m, const double* p) noexcept nogil:
    cdef Py_ssize_t i, k = t.k
    cdef double gap = 0.0
    t.s = 0
    for i in range(t.options):
        if p[i] > 0.0:
            if t.s == 0:
                temper_along(t.f, loss.rows + i * k, p[i], k, t.z)
            else:
                vec_add(loss.rows + i * k, p[i], k, t.z)
            t.S[t.s] = i
            t.s += 1
    t.mass = temper_softmax(t.z, m, k, t.q, &t.top)
    temper_mixture(loss.columns, t.q, k, t.options, t.c)
    t.lowest = temper_lowest(t.c, t.options)
    for i in range(t.s):
        gap += p[t.S[i]] * (t.c[t.S[i]] - t.c[t.lowest])
    return gap


cdef void taken(Temper* t, const double* p) noexcept nogil:
    cdef Py_ssize_t i
    t.s = 0
    for i in range(t.options):
        if p[i] > 0.0:
            t.S[t.s] = i
            t.s += 1
    t.lowest = temper_lowest(t.c, t.options)


cdef double begin_at_one(const Matrix* loss, Temper* t, double m, double* p) noexcept nogil:
    temper_softmax(t.f, m, t.k, t.q, &t.top)
    temper_mixture(loss.columns, t.q, t.k, t.options, t.c)
    memset(p, 0, t.options * sizeof(double))
    p[temper_lowest(t.c, t.options)] = 1.0
    return respond(loss, t, m, p)


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
    cdef Py_ssize_t b, k = t.k
    cdef double* a = t.W + rank * k
    temper_centred(loss.rows + t.S[i] * k, loss.rows + t.S[0] * k, shift, t.root, k, a)
    for b in range(rank):
        T[b] = simd_dot(t.W + b * k, a, k)
        vec_add(t.W + b * k, -T[b], k, a)
    return _normalised(a, k, _FLAT)


cdef void _back(const Temper* t, Py_ssize_t n) noexcept nogil:
    """The steps ``x`` of the first ``n`` options in play, those from ``n`` on being known; ``u`` is used up."""
    cdef Py_ssize_t i, b, own
    for i in range(n - 1, 0, -1):
        own = t.basis[i]
        t.x[i] = 0.0
        if own >= 0:
            t.x[i] = t.u[own] / t.T[i * t.most + own]
            for b in range(own):
                t.u[b] -= t.T[i * t.most + b] * t.x[i]


cdef void _direction(const Matrix* loss, Temper* t, double m, bint enters) noexcept nogil:
    """Newton's direction ``x``, or one without curvature; the last option in play may have no share yet."""
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


cdef double _slope(const Temper* t, double m, double length, double* second, double* third) noexcept nogil:
    """``<y, q>`` after a step of some length, and the second and third moments of ``y`` there."""
    cdef Py_ssize_t k = t.k
    temper_along(t.z, t.y, length, k, t.root)
    vec_exponentials(t.root, simd_max(t.root, k, -INFINITY), m, k, t.trial)
    return temper_moments(t.trial, t.y, simd_sum(t.trial, k), k, second, third)


cdef double _length(const Temper* t, double m, double most, double start, double left) noexcept nogil:
    """How far to go, at most ``most``, from a slope of ``start``: near its root, by Newton's method in a bracket.

    It ends where the root seems nearer than a share of the way, or the slope has come down to ``left``; beyond the
    root it must have come down to a share of what it was, or the step might not descend.
    """
    cdef double low = 0.0, high = INFINITY, here = min(1.0, most), curvature = 0.0, third = 0.0, slope, next, near
    cdef Py_ssize_t trial
    for trial in range(_TRIALS):
        slope = _slope(t, m, here, &curvature, &third)
        curvature /= m
        near = _NEAR * here * curvature
        if slope > 0.0:
            near = min(near, -_RISEN * start)
        if fabs(slope) <= max(left, near) or (slope < 0.0 and here == most):
            return here
        if slope > 0.0:
            high = here
        else:
            low = here
        next = here - slope / curvature if curvature > 0.0 else high
        if high == INFINITY:
            next = min(max(next, 2.0 * here), 16.0 * here, most)
        elif not low < next < high:
            next = 0.5 * (low + high)
        here = next
    return low if low > 0.0 else here


cdef void _pair(const Matrix* loss, Temper* t, double m, double closed, double* p) noexcept nogil:
    """The best shares of two options in play: the root of their difference in cost, by Halley's method in a bracket.

    A last step of ``h`` leaves an error of the order of ``h^3 / m^2``, so none is tried whose cube is rounding.
    """
    cdef Py_ssize_t k = t.k, first = t.S[0], second = t.S[1], trial
    cdef double low = -p[second], high = p[first], here = 0.0, spread = 0.0, third = 0.0, slope, bend, next
    cdef bint low_known = False, high_known = False, inside
    temper_difference(loss.rows + second * k, loss.rows + first * k, k, t.y)
    slope = temper_moments(t.q, t.y, 1.0, k, &spread, &third)
    for trial in range(_TRIALS):
        if slope < 0.0:
            low, low_known = here, True
        else:
            high, high_known = here, True
        if fabs(slope) <= 0.25 * closed or (slope < 0.0 and high == here) or (slope > 0.0 and low == here):
            break
        next = INFINITY if slope < 0.0 else -INFINITY
        if spread > 0.0:
            bend = min(max(0.5 * slope * third / (spread * spread), -1.0), 0.5)
            next = here - slope * m / (spread * (1.0 - bend))
        inside = low < next < high
        if not inside:
            next = 0.5 * (low + high) if low_known and high_known else high if slope < 0.0 else low
        if inside and fabs(next - here) <= _TRUSTED * m:
            here = next
            break
        here = next
        slope = _slope(t, m, here, &spread, &third)
    p[second] = max(p[second] + here, 0.0) if here > low or low_known else 0.0
    p[first] = max(1.0 - p[second], 0.0) if here < high or high_known else 0.0


cdef Py_ssize_t _room_to_move(const Temper* t, const double* p, double* most) noexcept nogil:
    """How far ``x`` leads inside the simplex, and the option in play that ends it; 0 for none or the first."""
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


cdef double closed_gap(double m) noexcept nogil:
    return _CLOSED + _ROUNDING / m


cdef double improve(const Matrix* loss, Temper* t, double m, double gap, double* p) noexcept nogil:
    cdef Py_ssize_t i, k = t.k, stop, heaviest, rounds, blind = 0
    cdef double closed = closed_gap(m), most = 0.0, slope, length, noise
    cdef bint enters
    for rounds in range(50 + 10 * t.options):
        if gap <= closed:
            break
        heaviest = 0
        for i in range(1, t.s):
            if p[t.S[i]] > p[t.S[heaviest]]:
                heaviest = i
        t.S[0], t.S[heaviest] = t.S[heaviest], t.S[0]
        enters = not p[t.lowest] > 0.0
        if enters:
            t.S[t.s] = t.lowest
            t.s += 1
        if t.s == 2:
            _pair(loss, t, m, closed, p)
            gap = respond(loss, t, m, p)
            continue
        temper_roots(t.q, k, t.root)
        _direction(loss, t, m, enters)
        stop = _room_to_move(t, p, &most)
        memset(t.y, 0, k * sizeof(double))
        for i in range(t.s):
            if t.x[i] != 0.0:
                vec_add(loss.rows + t.S[i] * k, t.x[i], k, t.y)
        slope = simd_dot(t.y, t.q, k)
        noise = _NOISE * max(simd_max(t.y, k, 0.0), -simd_min(t.y, k, 0.0))
        if slope < -noise:
            length = _length(t, m, most, slope, noise)
        elif blind < _BLIND:
            length, blind = min(1.0, most), blind + 1
        else:
            break
        _move(t, length, most, stop, p)
        gap = respond(loss, t, m, p)
    return gap


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
