"""The game of the squared loss of ordered labels at real positions ``t_1 < ... < t_k``, in one pass, O(k).

Squared loss ``(t_i - t_j)^2``. With ``h`` the upper concave hull of the points ``(t_j, f_j + t_j^2)``,

    F(f) = max_x  h(x) + min_l (t_l^2 - 2 t_l x),

which is concave and bends only at positions and at midpoints of neighbours, so one pass along the hull
finds it; the thesis's formula (2.37) takes O(k^3). At a midpoint, ``q`` is the pair of hull vertices around
it and ``p`` the pair of neighbours with mean half the hull's slope; at a position both are pure.

With ``mu H(q)`` added to the adversary's reward the predictor plays a point ``c``, between two neighbours or at one
position, and ``q`` is proportional to ``exp((f_j + (t_j - c)^2) / mu)``. Its mean falls as ``c`` rises: ``c`` is the
point between two neighbours at which it lies half way between them, or else the position that is nearest to it. Cost:
O(k log k) to find the neighbours, O(k) for each of the few steps to the point.
"""

from libc.math cimport INFINITY, fabs, isnan, log
from libc.string cimport memset
from nashlearn.kernels.ordinal cimport Ordered, lower_of, play_point, unknown_row
from nashlearn.kernels.simd cimport simd_dot, simd_max, simd_sum, simd_top
from nashlearn.kernels.vectors cimport vec_exponentials, vec_softmax_turn


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
            return unknown_row(q, p, k)
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
        if at < 0:
            memset(p, 0, k * sizeof(double))
            q[best] = p[best] = 1.0
        else:
            a, b = hull[at], hull[at + 1]
            share = (0.5 * (t[low] + t[low + 1]) - t[a]) / (t[b] - t[a])
            q[a], q[b] = 1.0 - share, share
            play_point(t, k, low, 0.5 * slope_at, p)
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
        """``mu log (sum_{j > low} (t_j - h) e_j / sum_{j <= low} (h - t_j) e_j)``: 0 where the mean of ``q`` is ``h``.

        Here ``h`` is half way from ``low`` to the next position and ``e_j = exp((f_j + (t_j - c)^2) / mu)``. The
        derivative in ``c`` goes into ``slope``: between -2 (t_k - t_1) and -2 (t_{low + 1} - t_low), for any ``mu``.
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
            play_point(t, k, 0, t[0], p)
        elif self.mean(f, mu, t[low], <double*> room) >= 0.5 * (t[low - 1] + t[low]):
            play_point(t, k, low - 1, t[low], p)
        else:
            play_point(t, k, low - 1, self.root(f, mu, low - 1, <double*> room), p)

    cdef double root(self, const double* f, double mu, Py_ssize_t low, double* room) noexcept nogil:
        """The ``c`` between two positions at which :meth:`lean` is 0: Newton's iteration, or bisection outside."""
        cdef double left = self.t[low], right = self.t[low + 1], c = 0.5 * (left + right), found, slope, ahead
        # The step after a near one would be its square, once steps move logits by little; none is below rounding.
        cdef double reach = min(1e-10 * (right - left), 1e-6 * mu / (self.t[self.k - 1] - self.t[0]))
        cdef double close = max(reach, 2e-16 * max(fabs(left), fabs(right)))
        cdef bint near
        cdef int step
        for step in range(100):
            found = self.lean(f, mu, c, low, &slope, room)
            if found > 0.0:
                left = c
            else:
                right = c
            ahead = c - found / slope
            near = fabs(ahead - c) <= close
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
        if lower_of(p, self.k) >= 0:
            mean = simd_dot(q, t, self.k) / simd_sum(q, self.k)
            for j in range(self.k):
                covariance += q[j] * (t[j] - mean) * v[j]
                variance += q[j] * (t[j] - mean) * (t[j] - mean)
            for j in range(self.k):
                v[j] -= covariance / variance * (t[j] - mean)
        vec_softmax_turn(q, mu, self.k, v)
