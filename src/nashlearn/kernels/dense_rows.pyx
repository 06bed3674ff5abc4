"""Dense rows, in single or double precision: products with weights and residuals, never a copy.

The weights (k, d + 1) have one entry per feature and a last one for the intercept, which sees the constant feature
``bias`` (1, or 0 where there is no intercept). Sums are taken in any order.
"""

from nashlearn.kernels.checks cimport DOUBLE, SINGLE, extent, is_single, matrix, matrix_out
from nashlearn.kernels.rows cimport Rows, add_row, real
from nashlearn.kernels.scratch cimport Scratch

cdef double _MANY = 0.7  # share of residuals that are not 0 above which classes had better share each load of a row
cdef enum:
    _NEAR = 1 << 16  # features of rows that stay in the second-level cache
    _FEWEST = 16  # rows that are read together, at least
    _MOST = 512


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
        add_row(X + rows[e] * d, r[rows[e] * k], d, g)
        g[d] += bias * r[rows[e] * k]
        e += 1


cdef class Dense(Rows):
    """C-contiguous examples (n, d); weights are kept as (k, d + 1)."""

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
                add_row(<const float*> self.at + i * self.d, delta[c], self.d, w)
            else:
                add_row(<const double*> self.at + i * self.d, delta[c], self.d, w)
            w[self.d] += delta[c] * self.bias

    cdef Py_ssize_t together(self) noexcept nogil:
        return min(max(_NEAR // (self.d + 1) // 4 * 4, <Py_ssize_t> _FEWEST), <Py_ssize_t> _MOST)

    cdef void put_scores(
        self, Py_ssize_t first, Py_ssize_t n, const double* W, Py_ssize_t k, double* f, Py_ssize_t* room
    ) noexcept nogil:
        cdef Py_ssize_t i = first, c
        for c in range(k):
            room[c] = c
        while i + 4 <= first + n:
            if self.single:
                _all_of_four(<const float*> self.at + i * self.d, self.d, self.bias, W, k, f)
            else:
                _all_of_four(<const double*> self.at + i * self.d, self.d, self.bias, W, k, f)
            i, f = i + 4, f + 4 * k
        while i < first + n:
            self.scores(i, W, k, room, k, f)
            i, f = i + 1, f + k

    cdef void put_moments(
        self, Py_ssize_t first, Py_ssize_t n, const double* r, Py_ssize_t k, double* G, Py_ssize_t* room
    ) noexcept nogil:
        cdef Py_ssize_t i, some = 0
        for i in range(n * k):
            some += r[i] != 0.0
        if some > _MANY * n * k:
            self.add_all(first, n, r, k, G, room)
        else:
            self.add_some(first, n, r, k, G, room)

    cdef void add_all(
        self, Py_ssize_t first, Py_ssize_t n, const double* r, Py_ssize_t k, double* G, Py_ssize_t* classes
    ) noexcept nogil:
        cdef Py_ssize_t i = first, c
        for c in range(k):
            classes[c] = c
        while i + 4 <= first + n:
            if self.single:
                _add_four(<const float*> self.at + i * self.d, self.d, self.bias, r, k, G)
            else:
                _add_four(<const double*> self.at + i * self.d, self.d, self.bias, r, k, G)
            i, r = i + 4, r + 4 * k
        while i < first + n:
            self.step(i, G, k, classes, k, r)
            i, r = i + 1, r + k

    cdef void add_some(
        self, Py_ssize_t first, Py_ssize_t n, const double* r, Py_ssize_t k, double* G, Py_ssize_t* rows
    ) noexcept nogil:
        """Class by class, the rows whose residuals are not 0."""
        cdef Py_ssize_t i, c, m
        for c in range(k):
            m = 0
            for i in range(n):
                if r[i * k + c] != 0.0:
                    rows[m] = i
                    m += 1
            if self.single:
                _add_listed(
                    <const float*> self.at + first * self.d, self.d, self.bias, r + c, k, rows, m, G + c * (self.d + 1)
                )
            else:
                _add_listed(
                    <const double*> self.at + first * self.d, self.d, self.bias, r + c, k, rows, m, G + c * (self.d + 1)
                )

    def all_scores(self, W, out):
        """Scores (n, k) of all rows, written into ``out``; ``W`` is (k, d + 1). Faster than BLAS where it is small."""
        cdef Py_ssize_t k = extent(out, "out", 1)
        cdef double* f = <double*> matrix_out(out, "out", DOUBLE, self.n, k)
        cdef const double* w = self.weights(W, k)
        cdef Scratch room = Scratch(k * sizeof(Py_ssize_t))
        with nogil:
            self.put_scores(0, self.n, w, k, f, <Py_ssize_t*> room.at)

    def add_moments(self, residual, G):
        """Add ``residual_i x_i'`` of all rows to ``G`` (k, d + 1). Faster than BLAS where it is small, or zeros are many."""
        cdef Py_ssize_t first = 0, n, together = self.together(), k = extent(residual, "residual", 1)
        cdef const double* r = <const double*> matrix(residual, "residual", DOUBLE, self.n, k)
        cdef double* g = <double*> matrix_out(G, "G", DOUBLE, k, self.d + 1)
        cdef Scratch room = Scratch(max(k, together) * sizeof(Py_ssize_t))
        with nogil:
            while first < self.n:
                n = min(together, self.n - first)
                self.put_moments(first, n, r + first * k, k, g, <Py_ssize_t*> room.at)
                first += n
