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
"""

from libc.math cimport INFINITY, NAN, isnan
from libc.string cimport memset
from nashlearn.kernels.checks cimport DOUBLE, vector
from nashlearn.kernels.quadratic cimport MatrixLoss, prox_room
from nashlearn.kernels.simd cimport simd_top


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
            q[j] = p[j] = 0.0
            if excess - t[j] > A:
                A, first = excess - t[j], j
            if excess + t[j] >= B:
                B, last = excess + t[j], j
        q[first] += 0.5
        q[last] += 0.5
        c = 0.5 * (B - A)
        while low < k - 2 and t[low + 1] < c:
            low += 1
        if k == 1:
            p[0] = 1.0
        else:
            _interpolate(t, low, c, p)
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


cdef class Squared(Ordered):
    """The loss ``(t_i - t_j)^2``."""

    cdef size_t room_size(self) noexcept nogil:
        return max(prox_room(self.options, self.k), <size_t> self.k * sizeof(Py_ssize_t))  # or the hull

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
