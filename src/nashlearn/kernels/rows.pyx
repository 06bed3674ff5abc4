"""How training reads examples: what all kinds of rows have in common, and rows of a Gram matrix, never a copy of either.

Visits read or move the weights of the classes they are given only. An extension type has no member of a fused type, so
that it keeps an address and branches once a row. Sums are taken in any order.
"""

from nashlearn.kernels.checks cimport DOUBLE, SINGLE, extent, is_single, matrix_out, rows_apart


cdef class Rows:
    """Examples, one at a time, for compiled code."""

    cdef double* weights(self, object W, Py_ssize_t k) except NULL:
        raise NotImplementedError

    cdef void scores(
        self, Py_ssize_t i, const double* W, Py_ssize_t k, const Py_ssize_t* classes, Py_ssize_t m, double* f
    ) noexcept nogil:
        pass

    cdef void step(
        self, Py_ssize_t i, double* W, Py_ssize_t k, const Py_ssize_t* classes, Py_ssize_t m, const double* delta
    ) noexcept nogil:
        pass


cdef void _add_light(const float* x, float step, Py_ssize_t n, float* w) noexcept nogil:
    """The same in single precision."""
    cdef Py_ssize_t j
    for j in range(n):
        w[j] += step * x[j]


cdef class Square(Rows):
    """A square Gram matrix, whose rows may lie apart; "weights" are the scores themselves, (k, n).

    They may be of single precision where the matrix is.
    """

    cdef object K
    cdef const void* at
    cdef bint single
    cdef bint light  # whether the weights are of single precision too
    cdef Py_ssize_t apart

    def __cinit__(self, K, *_):
        self.single, self.n = is_single(K, "K"), extent(K, "K", 0)
        self.at = rows_apart(K, "K", SINGLE if self.single else DOUBLE, self.n, self.n, &self.apart)
        self.K = K

    def __reduce__(self):
        return type(self), (self.K,)

    cdef double* weights(self, object W, Py_ssize_t k) except NULL:
        self.light = self.single and is_single(W, "W")
        return <double*> matrix_out(W, "W", SINGLE if self.light else DOUBLE, k, self.n)

    cdef void scores(
        self, Py_ssize_t i, const double* W, Py_ssize_t k, const Py_ssize_t* classes, Py_ssize_t m, double* f
    ) noexcept nogil:
        cdef Py_ssize_t c
        for c in range(m):
            f[c] = (<const float*> W)[classes[c] * self.n + i] if self.light else W[classes[c] * self.n + i]

    cdef void step(
        self, Py_ssize_t i, double* W, Py_ssize_t k, const Py_ssize_t* classes, Py_ssize_t m, const double* delta
    ) noexcept nogil:
        cdef Py_ssize_t c
        for c in range(m):
            if self.light:
                _add_light(
                    <const float*> self.at + i * self.apart, <float> delta[c], self.n, <float*> W + classes[c] * self.n
                )
            else:
                self.add(i, delta[c], W + classes[c] * self.n)

    cdef void add(self, Py_ssize_t i, double step, double* w) noexcept nogil:
        """Add a row of the matrix times ``step`` to ``w``."""
        if self.single:
            add_row(<const float*> self.at + i * self.apart, step, self.n, w)
        else:
            add_row(<const double*> self.at + i * self.apart, step, self.n, w)


cdef class SharedSquare(Square):
    """A square Gram matrix for one direction with offsets; "weights" are its n scores, then the offsets, (1, n + k).

    A score's own offset moves by ``offset`` times the step.
    """

    cdef double offset

    def __init__(self, K, double offset=1.0):
        self.offset = offset

    def __reduce__(self):
        return SharedSquare, (self.K, self.offset)

    cdef double* weights(self, object W, Py_ssize_t k) except NULL:
        return <double*> matrix_out(W, "W", DOUBLE, 1, self.n + k)

    cdef void scores(
        self, Py_ssize_t i, const double* W, Py_ssize_t k, const Py_ssize_t* classes, Py_ssize_t m, double* f
    ) noexcept nogil:
        cdef Py_ssize_t c
        for c in range(m):
            f[c] = W[i] + W[self.n + classes[c]]

    cdef void step(
        self, Py_ssize_t i, double* W, Py_ssize_t k, const Py_ssize_t* classes, Py_ssize_t m, const double* delta
    ) noexcept nogil:
        cdef double total = 0.0
        cdef Py_ssize_t c
        for c in range(m):
            W[self.n + classes[c]] += self.offset * delta[c]
            total += delta[c]
        self.add(i, total, W)
