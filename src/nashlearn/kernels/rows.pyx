"""Dense rows and rows of a Gram matrix, in single or double precision, never a copy of either.

The weights have one entry per feature and a last one for the intercept, which sees the constant feature ``bias`` (1, or
0 where there is no intercept). Visits read or move the weights of the classes they are given only. An extension type
has no member of a fused type, so that it keeps an address and branches once a row. Sums are taken in any order.
"""

from nashlearn.kernels.checks cimport DOUBLE, SINGLE, extent, is_single, matrix, matrix_out, rows_apart
from nashlearn.kernels.scratch cimport Scratch

ctypedef fused real:
    float
    double

cdef double _MANY = 0.7  # share of residuals that are not 0 above which classes had better share each load of a row
cdef enum:
    _NEAR = 1 << 16  # features of rows that stay in the second-level cache
    _FEWEST = 16  # rows that are read class by class, at least


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


cdef void _add_light(const float* x, float step, Py_ssize_t n, float* w) noexcept nogil:
    """The same in single precision."""
    cdef Py_ssize_t j
    for j in range(n):
        w[j] += step * x[j]


cdef void _scores_of_four(
    const real* x, Py_ssize_t d, const double* W, Py_ssize_t m, Py_ssize_t k, double* f
) noexcept nogil:
    """Products of four adjacent rows with ``m`` adjacent classes, 1 to 3, into ``f`` (4, k): loads are shared by all."""
    cdef const real* x1 = x + d
    cdef const real* x2 = x + 2 * d
    cdef const real* x3 = x + 3 * d
    cdef const double* v = W + (d + 1 if m > 1 else 0)
    cdef const double* u = W + (2 * (d + 1) if m > 2 else 0)
    cdef double a0 = 0.0, a1 = 0.0, a2 = 0.0, a3 = 0.0, b0 = 0.0, b1 = 0.0, b2 = 0.0, b3 = 0.0
    cdef double c0 = 0.0, c1 = 0.0, c2 = 0.0, c3 = 0.0
    cdef Py_ssize_t j
    if m == 3:
        for j in range(d):
            a0 += x[j] * W[j]
            a1 += x1[j] * W[j]
            a2 += x2[j] * W[j]
            a3 += x3[j] * W[j]
            b0 += x[j] * v[j]
            b1 += x1[j] * v[j]
            b2 += x2[j] * v[j]
            b3 += x3[j] * v[j]
            c0 += x[j] * u[j]
            c1 += x1[j] * u[j]
            c2 += x2[j] * u[j]
            c3 += x3[j] * u[j]
        f[2], f[k + 2], f[2 * k + 2], f[3 * k + 2] = c0, c1, c2, c3
    elif m == 2:
        for j in range(d):
            a0 += x[j] * W[j]
            a1 += x1[j] * W[j]
            a2 += x2[j] * W[j]
            a3 += x3[j] * W[j]
            b0 += x[j] * v[j]
            b1 += x1[j] * v[j]
            b2 += x2[j] * v[j]
            b3 += x3[j] * v[j]
    else:
        for j in range(d):
            a0 += x[j] * W[j]
            a1 += x1[j] * W[j]
            a2 += x2[j] * W[j]
            a3 += x3[j] * W[j]
    f[0], f[k], f[2 * k], f[3 * k] = a0, a1, a2, a3
    if m > 1:
        f[1], f[k + 1], f[2 * k + 1], f[3 * k + 1] = b0, b1, b2, b3


cdef void _all_of_four(
    const real* x, Py_ssize_t d, double bias, const double* W, Py_ssize_t k, double* f
) noexcept nogil:
    """Scores (4, k) of four adjacent rows."""
    cdef Py_ssize_t c = 0, i, m
    while c < k:
        m = 2 if k - c == 4 else min(k - c, <Py_ssize_t> 3)
        _scores_of_four(x, d, W + c * (d + 1), m, k, f + c)
        c += m
    for i in range(4):
        for c in range(k):
            f[i * k + c] += bias * W[c * (d + 1) + d]


cdef void _add_four(
    const real* x, Py_ssize_t d, double bias, const double* r, Py_ssize_t k, double* G
) noexcept nogil:
    """Add ``r_i x_i'`` of four adjacent rows to ``G`` (k, d + 1), two classes at a time: they share each load of it."""
    cdef const real* x1 = x + d
    cdef const real* x2 = x + 2 * d
    cdef const real* x3 = x + 3 * d
    cdef Py_ssize_t c = 0, j
    cdef double r0, r1, r2, r3, s0, s1, s2, s3
    cdef double* g
    cdef double* h
    while c + 2 <= k:
        g = G + c * (d + 1)
        h = g + d + 1
        r0, r1, r2, r3 = r[c], r[k + c], r[2 * k + c], r[3 * k + c]
        s0, s1, s2, s3 = r[c + 1], r[k + c + 1], r[2 * k + c + 1], r[3 * k + c + 1]
        for j in range(d):
            g[j] += (r0 * x[j] + r1 * x1[j]) + (r2 * x2[j] + r3 * x3[j])
            h[j] += (s0 * x[j] + s1 * x1[j]) + (s2 * x2[j] + s3 * x3[j])
        g[d] += bias * ((r0 + r1) + (r2 + r3))
        h[d] += bias * ((s0 + s1) + (s2 + s3))
        c += 2
    if c < k:
        g = G + c * (d + 1)
        r0, r1, r2, r3 = r[c], r[k + c], r[2 * k + c], r[3 * k + c]
        for j in range(d):
            g[j] += (r0 * x[j] + r1 * x1[j]) + (r2 * x2[j] + r3 * x3[j])
        g[d] += bias * ((r0 + r1) + (r2 + r3))


cdef void _add_listed(
    const real* X, Py_ssize_t d, double bias, const double* r, Py_ssize_t k, const Py_ssize_t* rows, Py_ssize_t m,
    double* g
) noexcept nogil:
    """Add ``r_i x_i`` of the ``m`` rows listed to ``g`` (d + 1), four at a time; ``r_i`` lie ``k`` apart."""
    cdef const real* x0
    cdef const real* x1
    cdef const real* x2
    cdef const real* x3
    cdef double r0, r1, r2, r3
    cdef Py_ssize_t e = 0, j
    while e + 4 <= m:
        x0, x1, x2, x3 = X + rows[e] * d, X + rows[e + 1] * d, X + rows[e + 2] * d, X + rows[e + 3] * d
        r0, r1, r2, r3 = r[rows[e] * k], r[rows[e + 1] * k], r[rows[e + 2] * k], r[rows[e + 3] * k]
        for j in range(d):
            g[j] += (r0 * x0[j] + r1 * x1[j]) + (r2 * x2[j] + r3 * x3[j])
        g[d] += bias * ((r0 + r1) + (r2 + r3))
        e += 4
    while e < m:
        _add(X + rows[e] * d, r[rows[e] * k], d, g)
        g[d] += bias * r[rows[e] * k]
        e += 1


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
        cdef Py_ssize_t i = 0, c, k = extent(out, "out", 1)
        cdef double* f = <double*> matrix_out(out, "out", DOUBLE, self.n, k)
        cdef const double* w = self.weights(W, k)
        cdef Scratch room = Scratch(k * sizeof(Py_ssize_t))
        cdef Py_ssize_t* classes = <Py_ssize_t*> room.at
        with nogil:
            for c in range(k):
                classes[c] = c
            while i + 4 <= self.n:
                if self.single:
                    _all_of_four(<const float*> self.at + i * self.d, self.d, self.bias, w, k, f + i * k)
                else:
                    _all_of_four(<const double*> self.at + i * self.d, self.d, self.bias, w, k, f + i * k)
                i += 4
            while i < self.n:
                self.scores(i, w, k, classes, k, f + i * k)
                i += 1

    def add_moments(self, residual, G):
        """Add ``residual_i x_i'`` of all rows to ``G`` (k, d + 1). Faster than BLAS where it is small, or zeros are many."""
        cdef Py_ssize_t i, some = 0, first = 0, k = extent(residual, "residual", 1)
        cdef const double* r = <const double*> matrix(residual, "residual", DOUBLE, self.n, k)
        cdef double* g = <double*> matrix_out(G, "G", DOUBLE, k, self.d + 1)
        cdef Py_ssize_t together = max(<Py_ssize_t> _FEWEST, _NEAR // (self.d + 1))
        cdef Scratch room = Scratch(max(k, together) * sizeof(Py_ssize_t))
        with nogil:
            for i in range(self.n * k):
                some += r[i] != 0.0
            if some > _MANY * self.n * k:
                self.add_all(r, k, g, <Py_ssize_t*> room.at)
            else:
                while first < self.n:
                    self.add_few(first, min(together, self.n - first), r + first * k, k, g, <Py_ssize_t*> room.at)
                    first += together

    cdef void add_all(self, const double* r, Py_ssize_t k, double* g, Py_ssize_t* classes) noexcept nogil:
        cdef Py_ssize_t i = 0, c
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

    cdef void add_few(
        self, Py_ssize_t first, Py_ssize_t n, const double* r, Py_ssize_t k, double* g, Py_ssize_t* rows
    ) noexcept nogil:
        """The same of ``n`` rows that the cache can hold, class by class, where residuals are not 0."""
        cdef Py_ssize_t i, c, m
        for c in range(k):
            m = 0
            for i in range(n):
                rows[m] = i
                m += r[i * k + c] != 0.0
            if self.single:
                _add_listed(
                    <const float*> self.at + first * self.d, self.d, self.bias, r + c, k, rows, m, g + c * (self.d + 1)
                )
            else:
                _add_listed(
                    <const double*> self.at + first * self.d, self.d, self.bias, r + c, k, rows, m, g + c * (self.d + 1)
                )


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
            _add(<const float*> self.at + i * self.apart, step, self.n, w)
        else:
            _add(<const double*> self.at + i * self.apart, step, self.n, w)


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
