"""Compressed sparse rows, with single or double data and indices of 32 or 64 bits, never a copy.

As in :mod:`nashlearn.kernels.rows` the type keeps addresses and branches once a row; sums are taken in any order.
"""

from nashlearn.kernels.checks cimport (
    DOUBLE,
    INDEX,
    NARROW,
    SINGLE,
    Kind,
    extent,
    is_narrow,
    is_single,
    matrix,
    matrix_out,
    rising,
    rising_narrow,
    vector,
    vector_out,
    within,
    within_narrow,
)
from nashlearn.kernels.rows cimport Rows
from nashlearn.kernels.scratch cimport Scratch

ctypedef fused real:
    float
    double

ctypedef fused integer:
    int
    Py_ssize_t


cdef struct Compressed:  # rows in CSR format, of the types that the function that reads them knows
    const void* data
    const void* indices
    const void* indptr
    double bias
    Py_ssize_t d


cdef void _all_scores(
    const real* data, const integer* indices, const integer* indptr, Py_ssize_t i, double bias, Py_ssize_t d,
    const double* W, Py_ssize_t k, double* f
) noexcept nogil:
    """The scores of all classes; the weights of a feature are adjacent."""
    cdef Py_ssize_t c, e = indptr[i], end = indptr[i + 1]
    cdef const double* w0
    cdef const double* w1
    cdef const double* w2
    cdef const double* w3
    cdef double x0, x1, x2, x3
    for c in range(k):
        f[c] = bias * W[d * k + c]
    while e + 4 <= end:  # four features share each load and store of f
        w0, w1 = W + indices[e] * k, W + indices[e + 1] * k
        w2, w3 = W + indices[e + 2] * k, W + indices[e + 3] * k
        x0, x1, x2, x3 = data[e], data[e + 1], data[e + 2], data[e + 3]
        for c in range(k):
            f[c] += x0 * w0[c] + x1 * w1[c] + x2 * w2[c] + x3 * w3[c]
        e += 4
    while e < end:
        w0, x0 = W + indices[e] * k, data[e]
        for c in range(k):
            f[c] += x0 * w0[c]
        e += 1


cdef void _sparse_scores(
    const Compressed* rows, const real* data, const integer* indices, Py_ssize_t i, const double* W, Py_ssize_t k,
    const Py_ssize_t* classes, Py_ssize_t m, double* f
) noexcept nogil:
    cdef const integer* indptr = <const integer*> rows.indptr
    cdef Py_ssize_t c, e
    cdef const double* w
    cdef double x
    if 6 * m < k:
        for c in range(m):
            f[c] = rows.bias * W[rows.d * k + classes[c]]
        for e in range(indptr[i], indptr[i + 1]):
            w, x = W + indices[e] * k, data[e]
            for c in range(m):
                f[c] += x * w[classes[c]]
        return
    # Adjacent weights are read six times as fast as scattered ones: read all, then keep those asked for.
    _all_scores(data, indices, indptr, i, rows.bias, rows.d, W, k, f)
    if m < k:
        for c in range(m):
            f[c] = f[classes[c]]


cdef void _sparse_step(
    const Compressed* rows, const real* data, const integer* indices, Py_ssize_t i, double* W, Py_ssize_t k,
    const Py_ssize_t* classes, Py_ssize_t m, const double* delta
) noexcept nogil:
    cdef const integer* indptr = <const integer*> rows.indptr
    cdef Py_ssize_t c, e
    cdef double* w = W + rows.d * k
    cdef double x
    if m == k:  # all classes, in their order: weights of a feature are adjacent
        for c in range(k):
            w[c] += rows.bias * delta[c]
        for e in range(indptr[i], indptr[i + 1]):
            w, x = W + indices[e] * k, data[e]
            for c in range(k):
                w[c] += x * delta[c]
        return
    for c in range(m):
        w[classes[c]] += rows.bias * delta[c]
    for e in range(indptr[i], indptr[i + 1]):
        w, x = W + indices[e] * k, data[e]
        for c in range(m):
            w[classes[c]] += x * delta[c]


cdef class Csr(Rows):
    """Compressed sparse rows; weights are kept as (d + 1, k), so that a feature's weights are adjacent."""

    cdef object kept
    cdef Compressed rows
    cdef bint single, narrow

    def __cinit__(self, data, indices, indptr, Py_ssize_t d, double bias):
        cdef Py_ssize_t size = extent(data, "data", 0)
        cdef Kind kind
        self.single, self.narrow = is_single(data, "data"), is_narrow(indices, "indices")
        kind = NARROW if self.narrow else INDEX
        self.n = extent(indptr, "indptr", 0) - 1
        self.rows.data = vector(data, "data", SINGLE if self.single else DOUBLE, size)
        self.rows.indices = vector(indices, "indices", kind, size)
        self.rows.indptr = vector(indptr, "indptr", kind, -1)
        if self.n < 0:
            raise ValueError("indptr must hold at least one number")
        if d > 1 << 60:  # one more must be a number, too
            raise ValueError(f"d must be a number of features that memory can hold; got {d}")
        if self.narrow:
            rising_narrow(<const int*> self.rows.indptr, self.n, size, "indptr")
            within_narrow(<const int*> self.rows.indices, size, d, "indices")
        else:
            rising(<const Py_ssize_t*> self.rows.indptr, self.n, size, "indptr")
            within(<const Py_ssize_t*> self.rows.indices, size, d, "indices")
        self.rows.d, self.rows.bias = d, bias
        self.kept = data, indices, indptr

    def __reduce__(self):
        return Csr, (*self.kept, self.rows.d, self.rows.bias)

    cdef double* weights(self, object W, Py_ssize_t k) except NULL:
        return <double*> matrix_out(W, "W", DOUBLE, self.rows.d + 1, k)

    cdef void scores(
        self, Py_ssize_t i, const double* W, Py_ssize_t k, const Py_ssize_t* classes, Py_ssize_t m, double* f
    ) noexcept nogil:
        cdef const Compressed* r = &self.rows
        cdef const int* narrow = <const int*> r.indices
        cdef const Py_ssize_t* wide = <const Py_ssize_t*> r.indices
        if self.single:
            if self.narrow:
                _sparse_scores(r, <const float*> r.data, narrow, i, W, k, classes, m, f)
            else:
                _sparse_scores(r, <const float*> r.data, wide, i, W, k, classes, m, f)
        elif self.narrow:
            _sparse_scores(r, <const double*> r.data, narrow, i, W, k, classes, m, f)
        else:
            _sparse_scores(r, <const double*> r.data, wide, i, W, k, classes, m, f)

    cdef void step(
        self, Py_ssize_t i, double* W, Py_ssize_t k, const Py_ssize_t* classes, Py_ssize_t m, const double* delta
    ) noexcept nogil:
        cdef const Compressed* r = &self.rows
        cdef const int* narrow = <const int*> r.indices
        cdef const Py_ssize_t* wide = <const Py_ssize_t*> r.indices
        if self.single:
            if self.narrow:
                _sparse_step(r, <const float*> r.data, narrow, i, W, k, classes, m, delta)
            else:
                _sparse_step(r, <const float*> r.data, wide, i, W, k, classes, m, delta)
        elif self.narrow:
            _sparse_step(r, <const double*> r.data, narrow, i, W, k, classes, m, delta)
        else:
            _sparse_step(r, <const double*> r.data, wide, i, W, k, classes, m, delta)

    def all_scores(self, W, out):
        """Scores (n, k) of all rows, written into ``out``; the rows are of doubles, ``W`` is (d + 1, k)."""
        cdef Py_ssize_t i, k = extent(out, "out", 1)
        cdef double* f = <double*> matrix_out(out, "out", DOUBLE, self.n, k)
        cdef const double* w = self.weights(W, k)
        cdef const double* data = <const double*> self.rows.data
        if self.single:
            raise ValueError("data must be of dtype float64")
        with nogil:
            for i in range(self.n):
                if self.narrow:
                    _all_scores(
                        data, <const int*> self.rows.indices, <const int*> self.rows.indptr, i, self.rows.bias,
                        self.rows.d, w, k, f + i * k,
                    )
                else:
                    _all_scores(
                        data, <const Py_ssize_t*> self.rows.indices, <const Py_ssize_t*> self.rows.indptr, i,
                        self.rows.bias, self.rows.d, w, k, f + i * k,
                    )

    def add_moments(self, residual, G):
        """Add ``x_i residual_i`` of all rows to ``G`` (d + 1, k); most residuals are mostly zeros."""
        cdef Py_ssize_t i, c, m, k = extent(residual, "residual", 1)
        cdef const double* r = <const double*> matrix(residual, "residual", DOUBLE, self.n, k)
        cdef double* g = <double*> matrix_out(G, "G", DOUBLE, self.rows.d + 1, k)
        cdef Scratch room = Scratch(k * (sizeof(Py_ssize_t) + sizeof(double)))
        cdef Py_ssize_t* classes = <Py_ssize_t*> room.at
        cdef double* delta = <double*> room.at + k
        with nogil:
            for i in range(self.n):
                m = 0
                for c in range(k):
                    if r[i * k + c] != 0.0:
                        classes[m], delta[m] = c, r[i * k + c]
                        m += 1
                self.step(i, g, k, classes, m, delta)

    def squared_norms(self, out):
        """``|x_i|^2`` of all rows, without the constant feature, written into ``out`` (n,)."""
        cdef double* norms = <double*> vector_out(out, "out", DOUBLE, self.n)
        with nogil:
            if self.single:
                if self.narrow:
                    _norms(<const float*> self.rows.data, <const int*> self.rows.indptr, self.n, norms)
                else:
                    _norms(<const float*> self.rows.data, <const Py_ssize_t*> self.rows.indptr, self.n, norms)
            elif self.narrow:
                _norms(<const double*> self.rows.data, <const int*> self.rows.indptr, self.n, norms)
            else:
                _norms(<const double*> self.rows.data, <const Py_ssize_t*> self.rows.indptr, self.n, norms)


cdef void _norms(const real* data, const integer* indptr, Py_ssize_t n, double* out) noexcept nogil:
    cdef Py_ssize_t i, e
    cdef double total
    for i in range(n):
        total = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            total += <double> data[e] * data[e]
        out[i] = total
