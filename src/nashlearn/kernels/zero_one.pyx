"""The zero-one game: ``L = 1 - I`` on the simplex, solved in O(k) without sorting.

With ``tau`` the sparsemax threshold of the scores, ``sum_j [f_j - tau]_+ = 1``, the value is
``F(f) = tau + 1``, the predictor plays ``p = [f - tau]_+`` and the adversary the uniform distribution on
the support of ``p`` ([fathony2016]_, Thm 1, whose maximising set is that support).

The proximal step that training takes decouples into two thresholds of the same kind: with
``sum_j [g_j - theta]_+ = 1 + a`` and ``sum_j [g_j - t]_+ = 1``,

    q = ([g - theta]_+ - [g - t]_+) / a,        p = [g - t]_+,

since capping ``q`` at its largest entry ``u = (t - theta) / a`` removes exactly what exceeds ``t``. Of two labels whose
scores differ by ``d`` it has a closed form: ``q`` is ``1/2`` plus and minus what ``d`` exceeds 1 by, over ``2a``.

With ``mu H(q)`` added to the adversary's reward the predictor plays the same ``p``, whatever ``mu``, and the adversary
``q = softmax(min(f, tau) / mu)``.
"""

from libc.math cimport INFINITY, NAN, isnan
from nashlearn.kernels.blocks cimport BLOCK, Block, block_zero_one, block_zero_one_plain, block_zero_one_steps
from nashlearn.kernels.loss cimport Certificate, Loss, Step, lose_row
from nashlearn.kernels.simd cimport (
    simd_excess,
    simd_gathered,
    simd_leaders,
    simd_max,
    simd_sum,
    simd_threshold,
    simd_top,
    simd_within,
)
from nashlearn.kernels.vectors cimport vec_softmax_turn

cdef enum:
    _SHORT = 128  # rows of more labels fill the lanes by themselves, and leave the cache together


cdef double _cap(
    const double* g, Py_ssize_t m, double top, double t, double a, Py_ssize_t capped
) noexcept nogil:
    """The ``u`` with ``sum_{j < m} min([u + g_j - top - t]_+, u) = a``: how far ``q`` rises, times ``a``.

    ``capped`` entries exceed the threshold ``t``.

    Newton's iteration from above, on the distances below the threshold alone, so that ``u`` stays exact where ``a`` is
    tiny beside the scores.
    """
    cdef Py_ssize_t free, reached = m + 1
    cdef double u = a / capped, total
    while True:
        total = simd_within(g, m, top, t, u, &free)
        if free >= reached:
            return u
        u = (a + total) / (capped + free)
        reached = free


cdef inline void _step_of_two(double d, double a, double* q, double* p) noexcept nogil:
    """The proximal step of two labels whose scores differ by ``d``."""
    cdef double more = (max(d - 1.0, 0.0) + min(d + 1.0, 0.0)) / (2.0 * a), lead = 0.5 * min(max(d, -1.0), 1.0)
    more = min(max(more, -0.5), 0.5)
    q[0], q[1], p[0], p[1] = 0.5 + more, 0.5 - more, 0.5 + lead, 0.5 - lead


cdef bint _two_will_do(Py_ssize_t m, const double* g, double a, double* q, double* p) noexcept nogil:
    """Take the proximal step of two labels or more where only the two best play a part; whether it is so.

    All others do where they are no more than ``theta``.
    """
    cdef double top[3]
    cdef Py_ssize_t at[2]
    cdef Py_ssize_t j
    cdef double two[4]
    cdef double d
    simd_leaders(g, m, top, at)
    d = top[0] - top[1]
    if not top[2] - top[0] <= max(-(1.0 + a), -0.5 * (1.0 + a + d)):
        return False
    _step_of_two(d, a, two, two + 2)
    for j in range(m):
        q[j] = p[j] = 0.0
    q[at[0]], q[at[1]], p[at[0]], p[at[1]] = two[0], two[1], two[2], two[3]
    return True


cdef class ZeroOne(Loss):
    """The zero-one loss of ``k`` labels. Its steps may be taken on a subset of them."""

    def __cinit__(self, Py_ssize_t k):
        if k < 1:
            raise ValueError(f"k must be positive; got {k}")
        self.k = self.options = k
        self.partial = True

    def __reduce__(self):
        return ZeroOne, (self.k,)

    cdef double equilibrium(self, const double* f, double* q, double* p, void* room) noexcept nogil:
        cdef Py_ssize_t j, count
        cdef double top = simd_top(f, self.k), t = simd_gathered(f, self.k, top, 1.0, p, &count)
        cdef double share
        count = simd_excess(f, self.k, top, t, p)
        share = 1.0 / count if count else NAN
        for j in range(self.k):
            q[j] = share * (p[j] > 0.0)  # without a branch that would be guessed wrong; NaN where the share is
        return top + (t + 1.0)

    cdef double gain(self, const double* p, double* reward) noexcept nogil:
        cdef double total = simd_sum(p, self.k)
        cdef Py_ssize_t j
        for j in range(self.k):
            reward[j] += total - p[j]
        return 0.0

    cdef double risk(self, const double* q, void* room) noexcept nogil:
        return simd_sum(q, self.k) - simd_max(q, self.k, 0.0)

    cdef void prox(self, Py_ssize_t m, const double* g, double a, double* q, double* p, void* room) noexcept nogil:
        cdef Py_ssize_t j, count
        cdef double top, t, u, scale, excess
        if m == 2:
            _step_of_two(g[0] - g[1], a, q, p)
            return
        if m > 2 and _two_will_do(m, g, a, q, p):
            return
        top = simd_max(g, m, g[0])
        t = simd_gathered(g, m, top, 1.0, p, &count)
        u, scale = _cap(g, m, top, t, a, count), 1.0 / a
        for j in range(m):
            excess = g[j] - top - t
            p[j] = max(excess, 0.0)
            q[j] = scale * min(max(excess + u, 0.0), u)

    cdef void contenders(self, const double* g, double a, const double* q, unsigned char* near) noexcept nogil:
        cdef double lowest = INFINITY
        cdef Py_ssize_t j
        for j in range(self.k):
            if q[j] > 0.0:
                lowest = min(lowest, g[j] - a * q[j])
        for j in range(self.k):
            near[j] = q[j] > 0.0 or g[j] > lowest - 0.02  # a label further off waits for the next full sweep

    cdef Py_ssize_t tangent(
        self, double a, const double* q, const unsigned char* tight, double* jacobian, void* room
    ) noexcept nogil:
        # (Cen_{q > 0} - Cen_{p > 0}) / a, with Cen_S = I_S - 1 1' / |S|: the entries at the cap move as one.
        cdef Py_ssize_t i, j, k = self.k, support = 0, capped = 0
        cdef double both
        for j in range(k):
            support += q[j] > 0.0
            capped += tight[j] != 0
        if support == capped:
            return 0
        for i in range(k):
            for j in range(k):
                both = -1.0 / support if q[i] > 0.0 and q[j] > 0.0 else 0.0
                if tight[i] and tight[j]:
                    both += 1.0 / capped
                elif i == j and q[i] > 0.0:
                    both += 1.0
                jacobian[i * k + j] = both / a
        return support

    cdef void temper(self, const double* f, double mu, double* p, void* room) noexcept nogil:
        cdef double top = simd_top(f, self.k)
        simd_excess(f, self.k, top, simd_threshold(f, self.k, top, 1.0), p)

    cdef void turn(self, double mu, const double* q, const double* p, double* v, void* room) noexcept nogil:
        # The labels of the support share one probability, and so the mean of what moves them.
        cdef Py_ssize_t j, count = 0
        cdef double shared = 0.0
        for j in range(self.k):
            if p[j] > 0.0:
                shared += v[j]
                count += 1
        for j in range(self.k):
            if p[j] > 0.0:
                v[j] = shared / count
        vec_softmax_turn(q, mu, self.k, v)

    cdef size_t play_size(self) noexcept nogil:
        return max(Loss.play_size(self), 3 * min(self.k, <Py_ssize_t> _SHORT) * BLOCK * sizeof(double))

    cdef void play(
        self, Py_ssize_t n, const double* f, double mu, double* p, double* q, Certificate* found, void* room
    ) noexcept nogil:
        cdef Block block
        cdef Py_ssize_t i, size
        if self.k > _SHORT:
            Loss.play(self, n, f, mu, p, q, found, room)
            return
        while n > 0:
            size = min(n, <Py_ssize_t> BLOCK)
            block_zero_one(f, size, self.k, mu, p, q, &block, <double*> room)
            for i in range(size):
                found[i].top, found[i].upper, found[i].least = block.top[i], block.upper[i], block.least[i]
                found[i].gap, found[i].entropy = block.gap[i], block.entropy[i]
                if isnan(found[i].top):
                    lose_row(self.k, self.k, p + i * self.k, q + i * self.k, found + i)
            f, p, q, found = f + size * self.k, p + size * self.k, q + size * self.k, found + size
            n -= size

    cdef Py_ssize_t block_equilibria(
        self, Py_ssize_t n, const double* f, double* value, double* q, double* p, double* gap, double* risk, void* room
    ) noexcept nogil:
        cdef Block block
        cdef Certificate lost
        cdef Py_ssize_t i, size, left = n, k = self.k
        if k > _SHORT:
            return 0
        while left > 0:
            size = min(left, <Py_ssize_t> BLOCK)
            block_zero_one_plain(f, size, k, p, q, &block, <double*> room)
            for i in range(size):
                value[i], gap[i], risk[i] = block.entropy[i], block.gap[i], block.least[i]
                if isnan(value[i]):
                    lose_row(k, k, p + i * k, q + i * k, &lost)
                    gap[i] = risk[i] = NAN
            f, p, q, left = f + size * k, p + size * k, q + size * k, left - size
            value, gap, risk = value + size, gap + size, risk + size
        return n

    cdef size_t block_steps_size(self) noexcept nogil:
        return 3 * min(self.k, <Py_ssize_t> _SHORT) * BLOCK * sizeof(double)

    cdef Py_ssize_t block_steps(
        self, Py_ssize_t n, const double* f, const double* middle, double mu, double* q, unsigned char* tight,
        Step* found, void* room
    ) noexcept nogil:
        cdef Block block
        cdef Py_ssize_t i, size, left = n, k = self.k
        if k > _SHORT:
            return 0
        while left > 0:
            size = min(left, <Py_ssize_t> BLOCK)
            block_zero_one_steps(f, middle, size, k, mu, q, tight, &block, <double*> room)
            for i in range(size):
                found[i].top, found[i].value = block.top[i], block.entropy[i]
                found[i].upper, found[i].risk = block.upper[i], block.least[i]
            f, middle, q, tight, found = f + size * k, middle + size * k, q + size * k, tight + size * k, found + size
            left -= size
        return n
