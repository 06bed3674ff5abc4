"""The zero-one game with one weight for each true label: ``L_ij = w_j`` off the diagonal, in O(k).

The value ``V`` solves ``sum_j [1 - (V - f_j) / w_j]_+ = 1``; the predictor plays those terms, and the
adversary ``q_j`` proportional to ``1 / w_j`` on their support, which makes all its rows of ``L q`` equal.
With equal weights this is ([fathony2016]_, Thm 1) scaled.
"""

from libc.math cimport NAN
from nashlearn.kernels.checks cimport DOUBLE, vector
from nashlearn.kernels.quadratic cimport MatrixLoss
from nashlearn.kernels.simd cimport simd_top


cdef class WeightedZeroOne(MatrixLoss):
    """Weights of the labels, their inverses, and the cost matrix (k, k) that they make."""

    cdef object kept
    cdef const double* weights
    cdef const double* inverse

    def __cinit__(self, weights, inverse, L):
        self.take(L)
        if self.options != self.k:
            raise ValueError(f"L must be square; got shape {L.shape}")
        self.kept = weights, inverse
        self.weights = <const double*> vector(weights, "weights", DOUBLE, self.k)
        self.inverse = <const double*> vector(inverse, "inverse", DOUBLE, self.k)

    def __reduce__(self):
        return WeightedZeroOne, (*self.kept, self.L)

    cdef double equilibrium(self, const double* f, double* q, double* p, void* room) noexcept nogil:
        # Newton from V = top, where the sum is at least 1: it is convex and falling, so the iterates rise
        # to the root and stop, exactly, once the support no longer shrinks. The mass is that of the last pass: at a
        # tie rounding may let a label in again, which is no worse a reply, but has to be counted.
        cdef const double* w = self.weights
        cdef const double* inverse = self.inverse
        cdef double top = simd_top(f, self.k), t = 0.0, mass, total, excess
        cdef Py_ssize_t j, k = self.k, count, support = k + 1
        while True:
            total, mass, count = -1.0, 0.0, 0
            for j in range(k):
                excess = f[j] - top + w[j]
                if excess > t:
                    total += excess * inverse[j]
                    mass += inverse[j]
                    count += 1
            if count >= support or count == 0:
                break
            t, support = total / mass, count
        for j in range(k):
            excess = f[j] - top + w[j]
            p[j] = max((excess - t) * inverse[j], 0.0)
            q[j] = inverse[j] / mass if excess > t else 0.0
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
