"""The games of ordered labels at real positions ``t_1 < ... < t_k``, each solved in one pass, O(k).

Absolute loss ``|t_i - t_j|``. With ``A = max_i f_i - t_i`` and ``B = max_j f_j + t_j``,

    F(f) = (A + B) / 2,    q = half on each maximiser,    p = the point c = (B - A) / 2,

"the point c" being its interpolation between the two positions beside it: ``f_j <= min(A + t_j, B - t_j)``
says ``F - f_j >= |t_j - c|``, and the interpolation's expected distance to every position is ``|t_j - c|``
([fathony2017]_, Thm 1; thesis (2.32)).

Squared loss ``(t_i - t_j)^2``. With ``h`` the upper concave hull of the points ``(t_j, f_j + t_j^2)``,

    F(f) = max_x  h(x) + min_l (t_l^2 - 2 t_l x),

which is concave and bends only at positions and at midpoints of neighbours, so one pass along the hull
finds it; the thesis's formula (2.37) takes O(k^3). At a midpoint, ``q`` is the pair of hull vertices around
it and ``p`` the pair of neighbours with mean half the hull's slope; at a position both are pure.

With ``mu H(q)`` added to the adversary's reward the predictor plays a point ``c`` too, between two neighbours or at one
position. The adversary's ``q``, proportional to ``exp((f_j + |t_j - c|) / mu)``, or with ``(t_j - c)^2``, then has its
median between the same two, or its mean half way: ``c`` is where that is so.
"""

from libc.math cimport INFINITY, NAN, fabs, isnan, log
from libc.string cimport memset
from nashlearn.kernels.checks cimport DOUBLE, vector
from nashlearn.kernels.quadratic cimport MatrixLoss, prox_room
from nashlearn.kernels.scratch cimport doubles
from nashlearn.kernels.simd cimport simd_dot, simd_max, simd_sum, simd_top
from nashlearn.kernels.vectors cimport vec_exponentials, vec_softmax_turn


cdef class Ordered(MatrixLoss):
    """Positions of the labels, increasing and centred, and the cost matrix (k, k) that they make."""

    cdef readonly object positions
    cdef const double* t

    def __cinit__(self, t, L):
        self.take(L)
        if self.options != self.k:
            raise ValueError(f"L must be square; got shape {L.shape}")
        self.positions, self.t = t, <const double*> vector(t, "t", DOUBLE, self.k)

    def __reduce__(self):
        return type(self), (self.positions, self.L)

    cdef size_t room_size(self) noexcept nogil:
        return max(prox_room(self.options, self.k), 6 * self.k * sizeof(double))  # or the running sums, or the hull


cdef double _unknown(double* q, double* p, Py_ssize_t k) noexcept nogil:
    """The answer to NaN."""
    cdef Py_ssize_t j
    for j in range(k):
        q[j] = p[j] = NAN
    return NAN


cdef void _interpolate(const double* t, Py_ssize_t low, double c, double* p) noexcept nogil:
    """Put mass on ``t[low]`` and ``t[low + 1]`` so that the mean is ``c``, which lies between them."""
    cdef double share = min(max((c - t[low]) / (t[low + 1] - t[low]), 0.0), 1.0)
    p[low] = 1.0 - share
    p[low + 1] = share


cdef void _play(const double* t, Py_ssize_t k, Py_ssize_t low, double c, double* p) noexcept nogil:
    """Write the point ``c``, between ``t[low]`` and ``t[low + 1]`` or outside on the side of these, into ``p``."""
    memset(p, 0, k * sizeof(double))
    if k == 1:
        p[0] = 1.0
    else:
        _interpolate(t, low, c, p)


cdef Py_ssize_t _lower(const double* p, Py_ssize_t k) noexcept nogil:
    """The lower of two neighbours that ``p`` plays, -1 where it plays one position alone."""
    cdef Py_ssize_t j
    for j in range(k - 1):
        if p[j] > 0.0:
            return j if p[j + 1] > 0.0 else -1
    return -1


cdef void _running(const double* f, const double* t, double mu, Py_ssize_t k, double* room) noexcept nogil:
    """``mu log sum exp((f_i - t_i) / mu)`` over ``i <= j`` and ``mu log sum exp((f_i + t_i) / mu)`` over ``i >= j``.

    Each sum is kept relative to its largest term, so that none vanishes: in the room, tops (2, k) and sums (2, k). A
    first pass lists the exponents of all terms, each the new term's or the old sum's.
    """
    cdef double* top = room
    cdef double* total = room + 2 * k
    cdef double* exponent = room + 4 * k
    cdef Py_ssize_t j, i, at, before
    cdef int side
    cdef double x, last
    for side in range(2):
        last = -INFINITY
        for j in range(k):
            i = j if side == 0 else k - 1 - j
            at = side * k + i
            x = f[i] - t[i] if side == 0 else f[i] + t[i]
            top[at] = max(x, last)
            exponent[at] = -fabs(x - last) if x > -INFINITY else x
            last = top[at]
    vec_exponentials(exponent, 0.0, mu, 2 * k, total)
    for side in range(2):
        before, last = -1, 0.0
        for j in range(k):
            at = j if side == 0 else 2 * k - 1 - j
            if before >= 0 and top[at] == top[before]:
                last = last + total[at]
            else:
                last = 1.0 + last * total[at] if top[at] > -INFINITY else 0.0
            total[at] = last
            before = at


cdef class Absolute(Ordered):
    """The loss ``|t_i - t_j|``."""

    cdef double equilibrium(self, const double* f, double* q, double* p, void* room) noexcept nogil:
        cdef const double* t = self.t
        cdef double top = simd_top(f, self.k), A = -INFINITY, B = -INFINITY, excess, c
        cdef Py_ssize_t j, k = self.k, first = 0, last = 0, low = 0
        if isnan(top):
            return _unknown(q, p, k)
        for j in range(k):
            excess = f[j] - top
            q[j] = 0.0
            if excess - t[j] > A:
                A, first = excess - t[j], j
            if excess + t[j] >= B:
                B, last = excess + t[j], j
        q[first] += 0.5
        q[last] += 0.5
        c = 0.5 * (B - A)
        while low < k - 2 and t[low + 1] < c:
            low += 1
        _play(t, k, low, c, p)
        return top + 0.5 * (A + B)

    cdef double gain(self, const double* p, double* reward) noexcept nogil:
        cdef const double* t = self.t
        cdef double distance = 0.0, right = 0.0, left = 0.0
        cdef Py_ssize_t i, j
        for i in range(self.k):
            distance += p[i] * (t[i] - t[0])
            right += p[i]
        for j in range(self.k):
            if j > 0:
                distance += (left - right) * (t[j] - t[j - 1])
            reward[j] += distance
            left += p[j]
            right -= p[j]
        return 0.0

    cdef double risk(self, const double* q, void* room) noexcept nogil:
        cdef const double* t = self.t
        cdef double distance = 0.0, right = 0.0, left = 0.0, least = INFINITY
        cdef Py_ssize_t i, j
        for j in range(self.k):
            distance += q[j] * (t[j] - t[0])
            right += q[j]
        for i in range(self.k):
            if i > 0:
                distance += (left - right) * (t[i] - t[i - 1])
            least = min(least, distance)
            left += q[i]
            right -= q[i]
        return least

    cdef void temper(self, const double* f, double mu, double* p, void* room) noexcept nogil:
        # The point at which the labels up to low have the mass of those above falls as low rises: bisection finds the
        # first that does not lie beyond the upper of the two.
        cdef const double* t = self.t
        cdef Py_ssize_t k = self.k, low = 0, high = k - 2, middle
        cdef double c
        _running(f, t, mu, k, <double*> room)
        while low < high:
            middle = (low + high) // 2
            if self.balance(middle, mu, <double*> room) <= t[middle + 1]:
                high = middle
            else:
                low = middle + 1
        c = self.balance(low, mu, <double*> room) if k > 1 else 0.0
        _play(t, k, low, c, p)

    cdef double balance(self, Py_ssize_t low, double mu, const double* room) noexcept nogil:
        """The ``c`` at which the labels up to ``low`` have the mass of those above."""
        cdef const double* top = room
        cdef const double* total = room + 2 * self.k
        cdef Py_ssize_t above = self.k + low + 1
        if not total[low] > 0.0:
            return INFINITY
        if not total[above] > 0.0:
            return -INFINITY
        return 0.5 * (top[above] - top[low] + mu * log(total[above] / total[low]))

    cdef void turn(self, double mu, const double* q, const double* p, double* v, void* room) noexcept nogil:
        # Between two positions each side keeps its half of the mass.
        cdef Py_ssize_t j, low = _lower(p, self.k) + 1
        cdef double left, right
        if low > 0:
            left = simd_dot(q, v, low) / simd_sum(q, low)
            right = simd_dot(q + low, v + low, self.k - low) / simd_sum(q + low, self.k - low)
            for j in range(self.k):
                v[j] -= left if j < low else right
        vec_softmax_turn(q, mu, self.k, v)


cdef Py_ssize_t _hull(
    const double* t, const double* scores, Py_ssize_t k, double top, Py_ssize_t* hull
) noexcept nogil:
    """Upper concave hull of ``(t_j, f_j - top + t_j^2)`` by a monotone chain; returns its size.

    Labels that lie more than the widest squared distance below the top are never played: left out, they
    cannot spoil the precision of the others.
    """
    cdef double width = t[k - 1] - t[0], height, height_a, height_b
    cdef Py_ssize_t j, a, b, size = 0
    for j in range(k):
        if not scores[j] - top >= -width * width:
            continue
        height = scores[j] - top + t[j] * t[j]
        while size > 1:
            b, a = hull[size - 1], hull[size - 2]
            height_a = scores[a] - top + t[a] * t[a]
            height_b = scores[b] - top + t[b] * t[b]
            if (height_b - height_a) * (t[j] - t[b]) > (height - height_b) * (t[b] - t[a]):
                break
            size -= 1
        hull[size] = j
        size += 1
    return size


cdef void _moments(
    const double* t, const double* x, Py_ssize_t k, double* mass, double* mean, double* spread
) noexcept nogil:
    """Mass, mean and mass times variance of ``x`` over the positions."""
    cdef Py_ssize_t j
    mass[0] = mean[0] = spread[0] = 0.0
    for j in range(k):
        mass[0] += x[j]
        mean[0] += x[j] * t[j]
    mean[0] /= mass[0]
    for j in range(k):
        spread[0] += x[j] * (t[j] - mean[0]) * (t[j] - mean[0])


cdef double _pull(
    const double* reward, const double* t, double half, Py_ssize_t count, double mu, double* lever, double* weight
) noexcept nogil:
    """``mu log sum_j |t_j - half| exp(reward_j / mu)``, with the mean of ``t_j - half`` under these weights."""
    cdef double top = simd_max(reward, count, -INFINITY), mass = 0.0, moment = 0.0
    cdef Py_ssize_t j
    vec_exponentials(reward, top, mu, count, weight)
    for j in range(count):
        weight[j] *= fabs(t[j] - half)
        mass += weight[j]
        moment += weight[j] * (t[j] - half)
    lever[0] = moment / mass
    return top + mu * log(mass)


cdef class Squared(Ordered):
    """The loss ``(t_i - t_j)^2``."""

    cdef double equilibrium(self, const double* f, double* q, double* p, void* room) noexcept nogil:
        cdef const double* t = self.t
        cdef Py_ssize_t* hull = <Py_ssize_t*> room
        cdef double top = simd_top(f, self.k), value = 0.0, slope_at = 0.0, height = 0.0, slope = 0.0, x, here, share
        cdef Py_ssize_t m, a, b, k = self.k, size, at = -1, low = 0, edge = -1, best = 0
        if isnan(top):
            return _unknown(q, p, k)
        while f[best] != top:
            best += 1
        size = _hull(t, f, k, top, hull)
        for m in range(k - 1):  # midpoint of t[m] and t[m + 1]
            x = 0.5 * (t[m] + t[m + 1])
            if size < 2 or x < t[hull[0]] or x > t[hull[size - 1]]:
                continue
            while edge < 0 or t[hull[edge + 1]] < x:
                edge += 1
                a, b = hull[edge], hull[edge + 1]
                height = f[a] - top + t[a] * t[a]
                slope = (f[b] - top + t[b] * t[b] - height) / (t[b] - t[a])
            here = height + slope * (x - t[hull[edge]]) - t[m] * t[m + 1]
            if here > value:
                value, at, low, slope_at = here, edge, m, slope
        memset(q, 0, k * sizeof(double))
        memset(p, 0, k * sizeof(double))
        if at < 0:
            q[best] = p[best] = 1.0
        else:
            a, b = hull[at], hull[at + 1]
            share = (0.5 * (t[low] + t[low + 1]) - t[a]) / (t[b] - t[a])
            q[a], q[b] = 1.0 - share, share
            _interpolate(t, low, 0.5 * slope_at, p)
        return top + value

    cdef double gain(self, const double* p, double* reward) noexcept nogil:
        cdef double mass, mean, spread, distance
        cdef Py_ssize_t j
        _moments(self.t, p, self.k, &mass, &mean, &spread)
        for j in range(self.k):
            distance = self.t[j] - mean
            reward[j] += mass * distance * distance
        return spread

    cdef double risk(self, const double* q, void* room) noexcept nogil:
        cdef double mass, mean, spread, distance, least = INFINITY
        cdef Py_ssize_t i
        _moments(self.t, q, self.k, &mass, &mean, &spread)
        for i in range(self.k):
            distance = self.t[i] - mean
            least = min(least, mass * distance * distance)
        return least + spread

    cdef double mean(self, const double* f, double mu, double c, double* room) noexcept nogil:
        """The mean of ``q`` where the predictor plays ``c``."""
        cdef const double* t = self.t
        cdef double* reward = room
        cdef double* weight = room + self.k
        cdef Py_ssize_t j
        for j in range(self.k):
            reward[j] = f[j] + (t[j] - c) * (t[j] - c)
        vec_exponentials(reward, simd_max(reward, self.k, -INFINITY), mu, self.k, weight)
        return simd_dot(weight, t, self.k) / simd_sum(weight, self.k)

    cdef double lean(
        self, const double* f, double mu, double c, Py_ssize_t low, double* slope, double* room
    ) noexcept nogil:
        """``mu log (sum_{j > low} (t_j - h) e_j / sum_{j <= low} (h - t_j) e_j)`` with ``h`` half way from ``low`` to the
        next position and ``e_j = exp((f_j + (t_j - c)^2) / mu)``: 0 where the mean of ``q`` is ``h``. Its derivative in
        ``c`` into ``slope``, which lies between -2 (t_{low + 1} - t_low) and -2 (t_k - t_1), whatever ``mu``.
        """
        cdef const double* t = self.t
        cdef double* reward = room
        cdef double half = 0.5 * (t[low] + t[low + 1]), up = 0.0, down = 0.0, found
        cdef Py_ssize_t j, above = self.k - low - 1
        for j in range(self.k):
            reward[j] = f[j] + (t[j] - c) * (t[j] - c)
        found = _pull(reward + low + 1, t + low + 1, half, above, mu, &up, room + self.k)
        found -= _pull(reward, t, half, low + 1, mu, &down, room + self.k)
        slope[0] = -2.0 * (up - down)
        return found

    cdef void temper(self, const double* f, double mu, double* p, void* room) noexcept nogil:
        # The mean of q falls as c rises: first the positions between which it passes half way, then the point.
        cdef const double* t = self.t
        cdef Py_ssize_t k = self.k, low = 0, high = k - 1, middle
        while low < high:
            middle = (low + high) // 2
            if self.mean(f, mu, t[middle], <double*> room) <= 0.5 * (t[middle] + t[middle + 1]):
                high = middle
            else:
                low = middle + 1
        if low == 0:
            _play(t, k, 0, t[0], p)
        elif self.mean(f, mu, t[low], <double*> room) >= 0.5 * (t[low - 1] + t[low]):
            _play(t, k, low - 1, t[low], p)
        else:
            _play(t, k, low - 1, self.root(f, mu, low - 1, <double*> room), p)

    cdef double root(self, const double* f, double mu, Py_ssize_t low, double* room) noexcept nogil:
        """The ``c`` between two positions at which :meth:`lean` is 0: Newton's iteration, or bisection outside."""
        cdef double left = self.t[low], right = self.t[low + 1], c = 0.5 * (left + right), found, slope, ahead
        cdef bint near
        cdef int step
        for step in range(100):
            found = self.lean(f, mu, c, low, &slope, room)
            if found > 0.0:
                left = c
            else:
                right = c
            ahead = c - found / slope
            near = fabs(ahead - c) <= 1e-10 * (self.t[low + 1] - self.t[low])  # the step after would be its square
            if not left < ahead < right and not near:
                ahead = 0.5 * (left + right)
            c = ahead
            if near:
                break
        return c

    cdef void turn(self, double mu, const double* q, const double* p, double* v, void* room) noexcept nogil:
        # Between two positions the mean stays half way: v loses its regression on the positions.
        cdef const double* t = self.t
        cdef double mean, covariance = 0.0, variance = 0.0
        cdef Py_ssize_t j
        if _lower(p, self.k) >= 0:
            mean = simd_dot(q, t, self.k) / simd_sum(q, self.k)
            for j in range(self.k):
                covariance += q[j] * (t[j] - mean) * v[j]
                variance += q[j] * (t[j] - mean) * (t[j] - mean)
            for j in range(self.k):
                v[j] -= covariance / variance * (t[j] - mean)
        vec_softmax_turn(q, mu, self.k, v)
