"""The games of ordered labels at real positions ``t_1 < ... < t_k``, and that of the absolute loss, in one pass, O(k).

Absolute loss ``|t_i - t_j|``. With ``A = max_i f_i - t_i`` and ``B = max_j f_j + t_j``,

    F(f) = (A + B) / 2,    q = half on each maximiser,    p = the point c = (B - A) / 2,

"the point c" being its interpolation between the two positions beside it: ``f_j <= min(A + t_j, B - t_j)``
says ``F - f_j >= |t_j - c|``, and the interpolation's expected distance to every position is ``|t_j - c|``
([fathony2017]_, Thm 1; thesis (2.32)).

With ``mu H(q)`` added to the adversary's reward the predictor plays a point ``c`` too, between two neighbours or at one
position, and ``q`` is proportional to ``exp((f_j + |t_j - c|) / mu)``. With ``A_m`` and ``B_m`` the maxima above made soft,
``A_m = mu log sum_{i <= m} exp((f_i - t_i) / mu)`` and ``B_m`` likewise over ``j > m``, the labels up to ``m`` have half of
the mass at ``c = (B_m - A_m) / 2``, which falls as ``m`` rises: ``c`` is that between ``t_m`` and ``t_{m+1}``, or the
position that the median passes at no such point. O(k) and O(log k) logarithms.
"""

from libc.math cimport INFINITY, NAN, fabs, isnan, log
from libc.string cimport memset
from nashlearn.kernels.checks cimport DOUBLE, vector
from nashlearn.kernels.quadratic cimport MatrixLoss, prox_room
from nashlearn.kernels.simd cimport simd_dot, simd_sum, simd_top
from nashlearn.kernels.vectors cimport vec_exponentials, vec_softmax_turn


cdef class Ordered(MatrixLoss):
    """Positions of the labels, increasing and centred, and the cost matrix (k, k) that they make."""

    def __cinit__(self, t, L):
        self.take(L)
        if self.options != self.k:
            raise ValueError(f"L must be square; got shape {L.shape}")
        self.positions, self.t = t, <const double*> vector(t, "t", DOUBLE, self.k)

    def __reduce__(self):
        return type(self), (self.positions, self.L)

    cdef size_t room_size(self) noexcept nogil:
        return max(prox_room(self.options, self.k), 6 * self.k * sizeof(double))  # or the running sums, or the hull


cdef double unknown_row(double* q, double* p, Py_ssize_t k) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(k):
        q[j] = p[j] = NAN
    return NAN


cdef void play_point(const double* t, Py_ssize_t k, Py_ssize_t low, double c, double* p) noexcept nogil:
    cdef double share
    memset(p, 0, k * sizeof(double))
    if k == 1:
        p[0] = 1.0
        return
    share = min(max((c - t[low]) / (t[low + 1] - t[low]), 0.0), 1.0)
    p[low], p[low + 1] = 1.0 - share, share


cdef Py_ssize_t lower_of(const double* p, Py_ssize_t k) noexcept nogil:
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
            return unknown_row(q, p, k)
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
        play_point(t, k, low, c, p)
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
        play_point(t, k, low, c, p)

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
        cdef Py_ssize_t j, low = lower_of(p, self.k) + 1
        cdef double left, right
        if low > 0:
            left = simd_dot(q, v, low) / simd_sum(q, low)
            right = simd_dot(q + low, v + low, self.k - low) / simd_sum(q + low, self.k - low)
            for j in range(self.k):
                v[j] -= left if j < low else right
        vec_softmax_turn(q, mu, self.k, v)
