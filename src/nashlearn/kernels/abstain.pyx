"""The zero-one game with one more option: to abstain, at a cost ``c`` whatever the label. O(k).

The Bayes risk is ``min(c, 1 - max q)``. Let ``s`` be the largest integer below ``1 / (1 - c)`` (all labels if
``c >= 1``), ``tau_1`` the sparsemax threshold of the scores and ``f_(s+1)`` the score of rank ``s + 1``. With

    tau = max(tau_1, f_(s+1)),    M = sum_j [f_j - tau]_+,

the value is ``F(f) = c + (1 - c) M + tau``, the predictor plays ``[f - tau]_+`` and abstains with the rest
``1 - M``. The adversary is uniform on the support if ``tau = tau_1``; otherwise it puts ``1 - c`` on each of
the first ``s`` labels and the rest on the next. For ``c <= 1/2`` this is thesis (2.53) and (2.62), which stop
there: ``F = c + min_M (1 - c) M + tau_M`` with ``d tau_M / dM = -1 / |support|`` proves it for every cost.
"""

from libc.math cimport INFINITY, NAN, isnan
from nashlearn.kernels.quadratic cimport MatrixLoss
from nashlearn.kernels.simd cimport simd_excess, simd_gathered, simd_max, simd_sum, simd_top


cdef double _ranked(const double* scores, Py_ssize_t k, Py_ssize_t s, double* first) noexcept nogil:
    """The score of rank ``s + 1 <= k``, by insertion into the largest so far. Expected O(k + s^2 log k)."""
    cdef Py_ssize_t i, j
    cdef double best = -INFINITY, second = -INFINITY
    if s == 1:  # as for every cost up to 1/2: without a branch that would be guessed wrong
        for j in range(k):
            second = max(second, min(best, scores[j]))
            best = max(best, scores[j])
        return second
    for j in range(k):
        if j > s and scores[j] <= first[s]:
            continue
        i = min(j, s)
        while i > 0 and first[i - 1] < scores[j]:
            first[i] = first[i - 1]
            i -= 1
        first[i] = scores[j]
    return first[s]


cdef class Abstain(MatrixLoss):
    """Cost of abstaining, the integer ``s`` that it sets, and the cost matrix (k + 1, k)."""

    cdef readonly double cost
    cdef readonly Py_ssize_t s

    def __cinit__(self, double cost, Py_ssize_t s, L):
        self.take(L)
        if self.options != self.k + 1:
            raise ValueError(f"L must have one row more than columns; got shape {L.shape}")
        if not 0 <= s <= self.k:
            raise ValueError(f"s must lie in 0..{self.k}; got {s}")
        self.cost, self.s = cost, s

    def __reduce__(self):
        return Abstain, (self.cost, self.s, self.L)

    cdef double equilibrium(self, const double* f, double* q, double* p, void* room) noexcept nogil:
        cdef double top = simd_top(f, self.k), c = self.cost, tau, mass, share
        cdef Py_ssize_t j, k = self.k, above, level
        cdef bint certain
        if isnan(top):
            for j in range(k):
                q[j] = p[j] = NAN
            p[k] = NAN
            return top
        tau = simd_gathered(f, k, top, 1.0, p, &above)
        certain = above <= self.s
        if not certain:
            tau = _ranked(f, k, self.s, q) - top
        above = simd_excess(f, k, top, tau, p)
        share = 1.0 / max(above, 1) if certain else 1.0 - c
        for j in range(k):
            q[j] = share * (p[j] > 0.0)
        if certain:
            p[k] = 0.0
            return top + (1.0 + tau)
        mass = simd_sum(p, k)
        p[k] = max(1.0 - mass, 0.0)
        level = self.s - above  # labels at tau that complete the first s
        for j in range(k):
            if f[j] - top == tau and level >= 0:
                q[j] = 1.0 - c if level > 0 else 1.0 - self.s * (1.0 - c)
                level -= 1
        return top + (c + (1.0 - c) * mass + tau)

    cdef double gain(self, const double* p, double* reward) noexcept nogil:
        cdef double total = simd_sum(p, self.k)
        cdef Py_ssize_t j
        for j in range(self.k):
            reward[j] += total - p[j]
        return self.cost * p[self.k]

    cdef double risk(self, const double* q, void* room) noexcept nogil:
        cdef double total = simd_sum(q, self.k)
        return min(self.cost * total, total - simd_max(q, self.k, 0.0))
