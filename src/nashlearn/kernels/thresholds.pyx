"""The product of binary games, one per threshold between ordered labels: the thresholded ordinal loss.

The predictor and the adversary choose, for each threshold, the probability that the label lies above it; each is worth

    F(f) = max_{0 <= q <= 1} f q + min(q, 1 - q) = max(0, f, (1 + f) / 2)

([fathony2019]_, eq. 2.34). The strategies do not sum to 1, and scores have nothing in common. O(m) a row.
"""

from libc.math cimport NAN, exp, fabs, isnan, log1p
from libc.string cimport memset
from nashlearn.kernels.loss cimport Loss


cdef class Thresholds(Loss):
    """``m`` independent thresholds."""

    def __cinit__(self, Py_ssize_t m):
        if m < 0:
            raise ValueError(f"m must not be negative; got {m}")
        self.k = self.options = m
        self.partial = True

    def __reduce__(self):
        return Thresholds, (self.k,)

    cdef double equilibrium(self, const double* f, double* q, double* p, void* room) noexcept nogil:
        cdef double value = 0.0
        cdef Py_ssize_t c, j
        for c in range(self.k):
            if isnan(f[c]):
                for j in range(self.k):
                    q[j] = p[j] = NAN
                return NAN
            p[c] = min(max(0.5 * (1.0 + f[c]), 0.0), 1.0)
            q[c] = 0.0 if f[c] < -1.0 else (1.0 if f[c] > 1.0 else 0.5)
            value += max(0.0, f[c], 0.5 * (1.0 + f[c]))
        return value

    cdef double common(self, const double* f) noexcept nogil:
        return 0.0

    cdef double gain(self, const double* p, double* reward) noexcept nogil:
        cdef double total = 0.0
        cdef Py_ssize_t c
        for c in range(self.k):
            reward[c] += 1.0 - 2.0 * p[c]
            total += p[c]
        return total

    cdef double reply(self, const double* reward, double mu, double* q) noexcept nogil:
        cdef double total = 0.0, small
        cdef Py_ssize_t c
        for c in range(self.k):
            total += max(reward[c], 0.0)
            if mu > 0.0:
                small = exp(-fabs(reward[c]) / mu)
                q[c] = (1.0 if reward[c] > 0.0 else small) / (1.0 + small)
                total += mu * log1p(small)
        return total

    cdef void temper(self, const double* f, double mu, double* p, void* room) noexcept nogil:
        cdef Py_ssize_t c
        for c in range(self.k):  # q = 1/2 as long as p can make up for the score
            p[c] = min(max(0.5 * (1.0 + f[c]), 0.0), 1.0)

    cdef void turn(self, double mu, const double* q, const double* p, double* v, void* room) noexcept nogil:
        cdef Py_ssize_t c
        for c in range(self.k):
            v[c] *= 0.0 if 0.0 < p[c] < 1.0 else q[c] * (1.0 - q[c]) / mu

    cdef double risk(self, const double* q, void* room) noexcept nogil:
        cdef double total = 0.0
        cdef Py_ssize_t c
        for c in range(self.k):
            total += min(q[c], 1.0 - q[c])
        return total

    cdef void prox(self, Py_ssize_t m, const double* g, double a, double* q, double* p, void* room) noexcept nogil:
        cdef double left, right
        cdef Py_ssize_t c
        for c in range(m):
            left, right = (g[c] + 1.0) / a, (g[c] - 1.0) / a  # optima of the two pieces, below and above 1/2
            q[c] = max(left, 0.0) if left < 0.5 else (min(right, 1.0) if right > 0.5 else 0.5)
            p[c] = min(max(0.5 * (1.0 + g[c] - 0.5 * a), 0.0), 1.0)  # between 0 and 1 at the kink alone

    cdef Py_ssize_t tangent(
        self, double a, const double* q, const unsigned char* tight, double* jacobian, void* room
    ) noexcept nogil:
        cdef Py_ssize_t c, k = self.k, free = 0
        memset(jacobian, 0, k * k * sizeof(double))
        for c in range(k):
            if 0.0 < q[c] < 1.0 and q[c] != 0.5:  # at the kink q stands still
                jacobian[c * k + c] = 1.0 / a
                free += 1
        return free
