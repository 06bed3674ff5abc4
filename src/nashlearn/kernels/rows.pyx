"""Dense rows and rows of a Gram matrix, in single or double precision, never a copy of either.

The weights have one entry per feature and a last one for the intercept, which sees the constant feature ``bias`` (1, or
0 where there is no intercept). Visits read or move the weights of the classes they are given only. An extension type
has no member of a fused type, so that it keeps an address and branches once a row. Sums are taken in any order.
"""

from nashlearn.kernels.checks cimport DOUBLE, SINGLE, extent, is_single, matrix, matrix_out
from nashlearn.kernels.scratch cimport Scratch

ctypedef fused real:
    float
    double


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


cdef void _dense_scores(
    const real* x, Py_ssize_t d, double bias, const double* W, const Py_ssize_t* classes, Py_ssize_t m, double* f
) noexcept nogil:
    cdef Py_ssize_t c = 0, j
    cdef double s0, s1, s2, s3, xj
    cdef const double* w0
    cdef const double* w1
    cdef const double* w2
    cdef const double* w3
    while c + 4 <= m:  # four classes share each load of x
        w0, w1 = W + classes[c] * (d + 1), W + classes[c + 1] * (d + 1)
        w2, w3 = W + classes[c + 2] * (d + 1), W + classes[c + 3] * (d + 1)
        s0, s1, s2, s3 = bias * w0[d], bias * w1[d], bias * w2[d], bias * w3[d]
        for j in range(d):
            xj = x[j]
            s0 += xj * w0[j]
            s1 += xj * w1[j]
            s2 += xj * w2[j]
            s3 += xj * w3[j]
        f[c], f[c + 1], f[c + 2], f[c + 3] = s0, s1, s2, s3
        c += 4
    while c + 2 <= m:
        w0, w1 = W + classes[c] * (d + 1), W + classes[c + 1] * (d + 1)
        s0, s1 = bias * w0[d], bias * w1[d]
        for j in range(d):
            xj = x[j]
            s0 += xj * w0[j]
            s1 += xj * w1[j]
        f[c], f[c + 1] = s0, s1
        c += 2
    if c < m:
        w0 = W + classes[c] * (d + 1)
        s0 = bias * w0[d]
        for j in range(d):
            s0 += x[j] * w0[j]
        f[c] = s0


cdef void _add(const real* x, double step, Py_ssize_t n, double* w) noexcept nogil:
    """``w += step x``."""
    cdef Py_ssize_t j
    for j in range(n):
        w[j] += step * x[j]


cdef void _add_four(
    const real* x, Py_ssize_t d, double bias, const double* r, Py_ssize_t k, double* G
) noexcept nogil:
    """Add ``r_i x_i'`` of four adjacent rows to ``G`` (k, d + 1): they share each load and store of it."""
    cdef const real* x1 = x + d
    cdef const real* x2 = x + 2 * d
    cdef const real* x3 = x + 3 * d
    cdef Py_ssize_t c, j
    cdef double r0, r1, r2, r3
    cdef double* g
    for c in range(k):
        g = G + c * (d + 1)
        r0, r1, r2, r3 = r[c], r[k + c], r[2 * k + c], r[3 * k + c]
        for j in range(d):
            g[j] += (r0 * x[j] + r1 * x1[j]) + (r2 * x2[j] + r3 * x3[j])
        g[d] += bias * ((r0 + r1) + (r2 + r3))


cdef class Dense(Rows):
    """C-contiguous examples (n, d); weights are kept as (k, d + 1)."""

    cdef object X
    cdef const void* at
    cdef bint single
    cdef Py_ssize_t d
    cdef double bias

    def __cinit__(self, X, double bias):
        self.single = is_single(X, "X")
        self.n, self.d = extent(X, "X", 0), extent(X, "X", 1)
        self.at = matrix(X, "X", SINGLE if self.single else DOUBLE, self.n, self.d)
        self.X, self.bias = X, bias

    def __reduce__(self):
        return Dense, (self.X, self.bias)

    cdef double* weights(self, object W, Py_ssize_t k) except NULL:
        return <double*> matrix_out(W, "W", DOUBLE, k, self.d + 1)

    cdef void scores(
        self, Py_ssize_t i, const double* W, Py_ssize_t k, const Py_ssize_t* classes, Py_ssize_t m, double* f
    ) noexcept nogil:
        if self.single:
            _dense_scores(<const float*> self.at + i * self.d, self.d, self.bias, W, classes, m, f)
        else:
            _dense_scores(<const double*> self.at + i * self.d, self.d, self.bias, W, classes, m, f)

    cdef void step(
        self, Py_ssize_t i, double* W, Py_ssize_t k, const Py_ssize_t* classes, Py_ssize_t m, const double* delta
    ) noexcept nogil:
        cdef Py_ssize_t c
        cdef double* w
        for c in range(m):
            w = W + classes[c] * (self.d + 1)
            if self.single:
                _add(<const float*> self.at + i * self.d, delta[c], self.d, w)
            else:
                _add(<const double*> self.at + i * self.d, delta[c], self.d, w)
            w[self.d] += delta[c] * self.bias

    def all_scores(self, W, out):
        """Scores (n, k) of all rows, written into ``out``; ``W`` is (k, d + 1). Faster than BLAS where it is small."""
        cdef Py_ssize_t i, c, k = extent(out, "out", 1)
        cdef double* f = <double*> matrix_out(out, "out", DOUBLE, self.n, k)
        cdef const double* w = self.weights(W, k)
        cdef Scratch room = Scratch(k * sizeof(Py_ssize_t))
        cdef Py_ssize_t* classes = <Py_ssize_t*> room.at
        with nogil:
            for c in range(k):
                classes[c] = c
            for i in range(self.n):
                self.scores(i, w, k, classes, k, f + i * k)

    def add_moments(self, residual, G):
        """Add ``residual_i x_i'`` of all rows to ``G`` (k, d + 1). Faster than BLAS where it is small."""
        cdef Py_ssize_t i = 0, c, k = extent(residual, "residual", 1)
        cdef const double* r = <const double*> matrix(residual, "residual", DOUBLE, self.n, k)
        cdef double* g = <double*> matrix_out(G, "G", DOUBLE, k, self.d + 1)
        cdef Scratch room = Scratch(k * sizeof(Py_ssize_t))
        cdef Py_ssize_t* classes = <Py_ssize_t*> room.at
        with nogil:
            for c in range(k):
                classes[c] = c
            while i + 4 <= self.n:
                if self.single:
                    _add_four(<const float*> self.at + i * self.d, self.d, self.bias, r + i * k, k, g)
                else:
                    _add_four(<const double*> self.at + i * self.d, self.d, self.bias, r + i * k, k, g)
                i += 4
            while i < self.n:
                self.step(i, g, k, classes, k, r + i * k)
                i += 1


cdef class Square(Rows):
    """A square Gram matrix; "weights" are the scores themselves, (k, n)."""

    cdef object K
    cdef const void* at
    cdef bint single

    def __cinit__(self, K, *_):
        self.single, self.n = is_single(K, "K"), extent(K, "K", 0)
        self.at = matrix(K, "K", SINGLE if self.single else DOUBLE, self.n, self.n)
        self.K = K

    def __reduce__(self):
        return type(self), (self.K,)

    cdef double* weights(self, object W, Py_ssize_t k) except NULL:
        return <double*> matrix_out(W, "W", DOUBLE, k, self.n)

    cdef void scores(
        self, Py_ssize_t i, const double* W, Py_ssize_t k, const Py_ssize_t* classes, Py_ssize_t m, double* f
    ) noexcept nogil:
        cdef Py_ssize_t c
        for c in range(m):
            f[c] = W[classes[c] * self.n + i]

    cdef void step(
        self, Py_ssize_t i, double* W, Py_ssize_t k, const Py_ssize_t* classes, Py_ssize_t m, const double* delta
    ) noexcept nogil:
        cdef Py_ssize_t c
        for c in range(m):
            self.add(i, delta[c], W + classes[c] * self.n)

    cdef void add(self, Py_ssize_t i, double step, double* w) noexcept nogil:
        """Add a row of the matrix times ``step`` to ``w``."""
        if self.single:
            _add(<const float*> self.at + i * self.n, step, self.n, w)
        else:
            _add(<const double*> self.at + i * self.n, step, self.n, w)


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
