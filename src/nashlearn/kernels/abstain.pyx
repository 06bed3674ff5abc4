"""The zero-one game with one more option: to abstain, at a cost ``c`` whatever the label. O(k).

The Bayes risk is ``min(c, 1 - max q)``. Let ``s`` be the largest integer below ``1 / (1 - c)`` (all labels if
``c >= 1``), ``tau_1`` the sparsemax threshold of the scores and ``f_(s+1)`` the score of rank ``s + 1``. With

    tau = max(tau_1, f_(s+1)),    M = sum_j [f_j - tau]_+,

the value is ``F(f) = c + (1 - c) M + tau``, the predictor plays ``[f - tau]_+`` and abstains with the rest
``1 - M``. The adversary is uniform on the support if ``tau = tau_1``; otherwise it puts ``1 - c`` on each of
the first ``s`` labels and the rest on the next. For ``c <= 1/2`` this is thesis (2.53) and (2.62), which stop
there: ``F = c + min_M (1 - c) M + tau_M`` with ``d tau_M / dM = -1 / |support|`` proves it for every cost.

With ``mu H(q)`` added to the adversary's reward ``q`` is proportional to ``exp(min(f, tau) / mu)``, with ``tau`` the
larger of ``tau_1`` and of that at which the largest ``q`` is ``1 - c``, so that its label costs what abstaining costs:

    sum_j exp((min(f_j, tau) - tau) / mu) = 1 / (1 - c).
"""

from libc.math cimport INFINITY, NAN, isnan, log
from nashlearn.kernels.quadratic cimport MatrixLoss, prox_room
from nashlearn.kernels.simd cimport simd_excess, simd_gathered, simd_max, simd_sum, simd_threshold, simd_top
from nashlearn.kernels.vectors cimport vec_exponentials, vec_softmax_turn


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

    cdef size_t room_size(self) noexcept nogil:
        return max(prox_room(self.options, self.k), 2 * self.k * sizeof(double))

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

    cdef double cap(self, const double* f, double top, double mu, void* room) noexcept nogil:
        """The ``tau`` beyond ``top``, the largest score, at which the largest ``q`` is ``1 - c``.

        Newton's iteration from infinity in ``y = exp(tau / mu)``: ``sum_j min(exp(f_j / mu), y) - y / (1 - c)`` is
        concave, so the iterates fall to its root, and labels that lie above one stay above. The sum over the others is
        relative to the largest of them, so that it never vanishes. Cost: O(k) for each of at most s + 1 iterates.
        """
        cdef double* below = <double*> room
        cdef double tau = INFINITY, ahead, first, total
        cdef Py_ssize_t j, k = self.k, count, above = -1
        while True:
            count = 0
            for j in range(k):
                below[j] = f[j] - top
                if below[j] > tau:
                    below[j] = -INFINITY
                    count += 1
            first = simd_max(below, k, -INFINITY)
            if count <= above or count > self.s:  # rounding may let in more than s
                return tau
            if not first > -INFINITY:  # each of the labels left has a larger q however low tau is
                return first
            vec_exponentials(below, first, mu, k, below + k)
            total = simd_sum(below + k, k)
            ahead = first + mu * log(total / (1.0 / (1.0 - self.cost) - count))
            if not ahead < tau:
                return tau
            tau, above = ahead, count

    cdef void temper(self, const double* f, double mu, double* p, void* room) noexcept nogil:
        cdef Py_ssize_t k = self.k
        cdef double top = simd_top(f, k), tau = simd_threshold(f, k, top, 1.0), capped = -INFINITY
        if self.cost < 1.0:
            capped = self.cap(f, top, mu, room)
        simd_excess(f, k, top, max(tau, capped), p)
        p[k] = max(1.0 - simd_sum(p, k), 0.0) if capped > tau else 0.0

    cdef void turn(self, double mu, const double* q, const double* p, double* v, void* room) noexcept nogil:
        # Labels of the support share one probability; while the predictor also abstains it is 1 - c, and stands still.
        cdef bint fixed = p[self.k] > 0.0
        cdef double shared = 0.0, mean = 0.0, mass = 0.0
        cdef Py_ssize_t j, count = 0
        for j in range(self.k):
            if p[j] > 0.0:
                shared += v[j]
                count += 1
            else:
                mean += q[j] * v[j]
                mass += q[j]
        for j in range(self.k):
            if p[j] > 0.0:
                v[j] = (mean / mass if mass > 0.0 else 0.0) if fixed else shared / count
        vec_softmax_turn(q, mu, self.k, v)
