"""The zero-one game with one weight for each true label: ``L_ij = w_j`` off the diagonal, in O(k).

The value ``V`` solves ``sum_j [1 - (V - f_j) / w_j]_+ = 1``; the predictor plays those terms, and the
adversary ``q_j`` proportional to ``1 / w_j`` on their support, which makes all its rows of ``L q`` equal.
With equal weights this is ([fathony2016]_, Thm 1) scaled.

With ``mu H(q)`` added to the adversary's reward the predictor plays ``[b_j - tau]_+ / w_j``, where
``b_j = f_j + w_j + mu log w_j`` and ``tau`` makes it sum to 1: then ``w_j q_j``, what an option saves, is largest on
its support.
"""

from libc.math cimport INFINITY, NAN, log
from nashlearn.kernels.checks cimport DOUBLE, vector
from nashlearn.kernels.quadratic cimport MatrixLoss, prox_room
from nashlearn.kernels.scratch cimport Scratch
from nashlearn.kernels.simd cimport simd_max, simd_top
from nashlearn.kernels.vectors cimport vec_softmax_turn


cdef double _threshold(
    const double* b, const double* inverse, Py_ssize_t k, double t, double* mass, Py_ssize_t* count
) noexcept nogil:
    """The ``t`` with ``sum_j [b_j - t]_+ / w_j = 1``, from one at which the sum is no less.

    The sum of ``1 / w_j`` over the labels above it goes into ``mass``, their number into ``count``.

    Newton's iteration: the sum is convex and falling, so the iterates rise to the root and stop, exactly, once the
    support no longer shrinks. The mass is that of the last pass: at a tie rounding may let a label in again, which is
    no worse a reply, but has to be counted.
    """
    cdef Py_ssize_t j, support = k + 1
    cdef double total
    while True:
        total, mass[0], count[0] = -1.0, 0.0, 0
        for j in range(k):
            if b[j] > t:
                total += b[j] * inverse[j]
                mass[0] += inverse[j]
                count[0] += 1
        if count[0] >= support or count[0] == 0:
            return t
        t, support = total / mass[0], count[0]


cdef class WeightedZeroOne(MatrixLoss):
    """Weights of the labels, their inverses, and the cost matrix (k, k) that they make."""

    cdef object kept
    cdef const double* weights
    cdef const double* inverse
    cdef Scratch logarithms  # of the weights over the largest: of any size, in any unit

    def __cinit__(self, weights, inverse, L):
        self.take(L)
        if self.options != self.k:
            raise ValueError(f"L must be square; got shape {L.shape}")
        self.kept = weights, inverse
        self.weights = <const double*> vector(weights, "weights", DOUBLE, self.k)
        self.inverse = <const double*> vector(inverse, "inverse", DOUBLE, self.k)
        self.logarithms = Scratch(self.k * sizeof(double))
        self.take_logarithms()

    def __reduce__(self):
        return WeightedZeroOne, (*self.kept, self.L)

    cdef void take_logarithms(self) noexcept nogil:
        cdef double top = simd_max(self.weights, self.k, 0.0)
        cdef Py_ssize_t j
        for j in range(self.k):
            (<double*> self.logarithms.at)[j] = log(self.weights[j] / top)

    cdef size_t room_size(self) noexcept nogil:
        return max(prox_room(self.options, self.k), self.k * sizeof(double))

    cdef double equilibrium(self, const double* f, double* q, double* p, void* room) noexcept nogil:
        cdef const double* inverse = self.inverse
        cdef double* b = <double*> room
        cdef double top = simd_top(f, self.k), t, mass
        cdef Py_ssize_t j, k = self.k, count
        for j in range(k):
            b[j] = f[j] - top + self.weights[j]
        t = _threshold(b, inverse, k, 0.0, &mass, &count)
        for j in range(k):
            p[j] = max((b[j] - t) * inverse[j], 0.0)
            q[j] = inverse[j] / mass if b[j] > t else 0.0
        if count == 0:
            for j in range(k):
                q[j] = p[j] = NAN
        return top + t

    cdef double gain(self, const double* p, double* reward) noexcept nogil:
        cdef double total = 0.0
        cdef Py_ssize_t j
        for j in range(self.k):
            total += p[j]
        for j in range(self.k):
            reward[j] += self.weights[j] * (total - p[j])
        return 0.0

    cdef double risk(self, const double* q, void* room) noexcept nogil:
        cdef double total = 0.0, top = 0.0
        cdef Py_ssize_t j
        for j in range(self.k):
            total += self.weights[j] * q[j]
            top = max(top, self.weights[j] * q[j])
        return total - top

    cdef void temper(self, const double* f, double mu, double* p, void* room) noexcept nogil:
        cdef double* b = <double*> room
        cdef const double* logarithm = <const double*> self.logarithms.at
        cdef double top = -INFINITY, t, mass
        cdef Py_ssize_t j, k = self.k, count
        for j in range(k):
            b[j] = f[j] + mu * logarithm[j]
            top = max(top, b[j])
        for j in range(k):
            b[j] = b[j] - top + self.weights[j]
        t = _threshold(b, self.inverse, k, 0.0, &mass, &count)
        for j in range(k):
            p[j] = max((b[j] - t) * self.inverse[j], 0.0)

    cdef void turn(self, double mu, const double* q, const double* p, double* v, void* room) noexcept nogil:
        # The logits of the support move as one: p gives up what v adds to each, over its weight.
        cdef double shared = 0.0, mass = 0.0
        cdef Py_ssize_t j
        for j in range(self.k):
            if p[j] > 0.0:
                shared += v[j] * self.inverse[j]
                mass += self.inverse[j]
        for j in range(self.k):
            if p[j] > 0.0:
                v[j] = shared / mass
        vec_softmax_turn(q, mu, self.k, v)
