"""Linear scores of many nodes from sparse features, and the moments of these features.

Parts of the rows are written by several threads at once, never the same one.
"""

from nashlearn.kernels.checks cimport (
    DOUBLE,
    INDEX,
    NARROW,
    Kind,
    extent,
    is_narrow,
    matrix,
    matrix_out,
    rising,
    rising_narrow,
    vector,
    vector_out,
    within,
    within_narrow,
)
from nashlearn.kernels.vectors cimport vec_add

ctypedef fused integer:
    int
    Py_ssize_t


cdef void _times(
    const double* data, const integer* indices, const integer* indptr, const double* table, Py_ssize_t k,
    Py_ssize_t start, Py_ssize_t stop, double* out
) noexcept nogil:
    cdef Py_ssize_t t, c, e, end
    cdef double* row
    cdef const double* w0
    cdef const double* w1
    cdef const double* w2
    cdef const double* w3
    cdef double x0, x1, x2, x3
    for t in range(start, stop):
        row, e, end = out + t * k, indptr[t], indptr[t + 1]
        for c in range(k):
            row[c] = 0.0
        while e + 4 <= end:  # four features share each load and store of the row
            w0, w1 = table + indices[e] * k, table + indices[e + 1] * k
            w2, w3 = table + indices[e + 2] * k, table + indices[e + 3] * k
            x0, x1, x2, x3 = data[e], data[e + 1], data[e + 2], data[e + 3]
            for c in range(k):
                row[c] = row[c] + x0 * w0[c] + x1 * w1[c] + x2 * w2[c] + x3 * w3[c]
            e += 4
        while e < end:
            w0, x0 = table + indices[e] * k, data[e]
            for c in range(k):
                row[c] += x0 * w0[c]
            e += 1


cdef void _add_products(
    const double* data, const integer* indices, const integer* indptr, const double* q, Py_ssize_t k,
    Py_ssize_t start, Py_ssize_t stop, double* out
) noexcept nogil:
    cdef Py_ssize_t t, e
    for t in range(start, stop):
        for e in range(indptr[t], indptr[t + 1]):
            vec_add(q + t * k, data[e], k, out + indices[e] * k)


cdef class Compressed:
    """A matrix (n, d) in CSR format, with indices of 32 or 64 bits, or one in CSC format by its columns."""

    cdef object kept
    cdef const double* data
    cdef const void* indices
    cdef const void* indptr
    cdef Py_ssize_t n, d
    cdef bint narrow

    def __cinit__(self, data, indices, indptr, Py_ssize_t d, *pattern):
        cdef Py_ssize_t size = extent(data, "data", 0)
        cdef Kind kind
        self.narrow = is_narrow(indices, "indices")
        kind = NARROW if self.narrow else INDEX
        self.n, self.d = extent(indptr, "indptr", 0) - 1, d
        self.data = <const double*> vector(data, "data", DOUBLE, size)
        self.indices = vector(indices, "indices", kind, size)
        self.indptr = vector(indptr, "indptr", kind, -1)
        if self.n < 0:
            raise ValueError("indptr must hold at least one number")
        if self.narrow:
            rising_narrow(<const int*> self.indptr, self.n, size, "indptr")
            within_narrow(<const int*> self.indices, size, d, "indices")
        else:
            rising(<const Py_ssize_t*> self.indptr, self.n, size, "indptr")
            within(<const Py_ssize_t*> self.indices, size, d, "indices")
        self.kept = data, indices, indptr, d, *pattern

    def __reduce__(self):
        return type(self), self.kept

    def times(self, table, out, Py_ssize_t start, Py_ssize_t stop):
        """Rows ``start`` to ``stop`` of the product with ``table`` (d, k), into those of ``out`` (n, k).

        Cost: O(k) for each nonzero.
        """
        cdef Py_ssize_t k = extent(table, "table", 1)
        cdef const double* w = <const double*> matrix(table, "table", DOUBLE, self.d, k)
        cdef double* S = <double*> matrix_out(out, "out", DOUBLE, self.n, k)
        _check_part(start, stop, self.n)
        with nogil:
            if self.narrow:
                _times(self.data, <const int*> self.indices, <const int*> self.indptr, w, k, start, stop, S)
            else:
                _times(
                    self.data, <const Py_ssize_t*> self.indices, <const Py_ssize_t*> self.indptr, w, k, start, stop, S
                )

    def add_products(self, q, out, Py_ssize_t start, Py_ssize_t stop):
        """Add the rows ``start`` to ``stop``, transposed, times those of ``q`` (n, k) to ``out`` (d, k).

        Cost: O(k) for each nonzero; the better way where ``out`` is small.
        """
        cdef Py_ssize_t k = extent(q, "q", 1)
        cdef const double* Q = <const double*> matrix(q, "q", DOUBLE, self.n, k)
        cdef double* sums = <double*> matrix_out(out, "out", DOUBLE, self.d, k)
        _check_part(start, stop, self.n)
        with nogil:
            if self.narrow:
                _add_products(self.data, <const int*> self.indices, <const int*> self.indptr, Q, k, start, stop, sums)
            else:
                _add_products(
                    self.data, <const Py_ssize_t*> self.indices, <const Py_ssize_t*> self.indptr, Q, k, start, stop,
                    sums,
                )


cdef void _pattern_scores(
    const double* data, const integer* indices, const integer* indptr, const integer* first, const int* label,
    const double* w, Py_ssize_t k, Py_ssize_t start, Py_ssize_t stop, double* out
) noexcept nogil:
    cdef Py_ssize_t t, c, e
    cdef double* row
    cdef double x
    for t in range(start, stop):
        row = out + t * k
        for e in range(indptr[t], indptr[t + 1]):
            x = data[e]
            for c in range(first[indices[e]], first[indices[e] + 1]):
                row[label[c]] += x * w[c]


cdef void _pattern_moments(
    const double* data, const integer* indices, const integer* indptr, const integer* first, const int* label,
    const double* q, Py_ssize_t k, Py_ssize_t start, Py_ssize_t stop, double* out
) noexcept nogil:
    cdef Py_ssize_t t, c, e
    cdef const double* row
    cdef double x
    for t in range(start, stop):
        row = q + t * k
        for e in range(indptr[t], indptr[t + 1]):
            x = data[e]
            for c in range(first[indices[e]], first[indices[e] + 1]):
                out[c] += x * row[label[c]]


cdef class Pattern(Compressed):
    """Compressed rows of features, of which ``j`` has weights for the labels ``label[first[j] : first[j + 1]]``.

    ``first`` (d + 1,) is as wide as ``indices``; ``label`` (weights,) is of 32 bits, each below ``k``.
    """

    cdef const void* first
    cdef const int* label
    cdef Py_ssize_t k, weights

    def __cinit__(self, data, indices, indptr, Py_ssize_t d, Py_ssize_t k, first, label):
        self.k, self.weights = k, extent(label, "label", 0)
        if extent(first, "first", 0) - 1 != d:  # d + 1 may overflow
            raise ValueError(f"first must hold one number more than there are features; got {extent(first, 'first', 0)}")
        self.first = vector(first, "first", NARROW if self.narrow else INDEX, d + 1)
        self.label = <const int*> vector(label, "label", NARROW, self.weights)
        if self.narrow:
            rising_narrow(<const int*> self.first, d, self.weights, "first")
        else:
            rising(<const Py_ssize_t*> self.first, d, self.weights, "first")
        within_narrow(self.label, self.weights, k, "label")

    def add_scores(self, w, out, Py_ssize_t start, Py_ssize_t stop):
        """Add scores of the rows ``start`` to ``stop`` at the weights ``w`` (weights,) to those of ``out`` (n, k).

        Cost: O(1) for each nonzero and label of its feature.
        """
        cdef const double* weight = <const double*> vector(w, "w", DOUBLE, self.weights)
        cdef double* S = <double*> matrix_out(out, "out", DOUBLE, self.n, self.k)
        _check_part(start, stop, self.n)
        with nogil:
            if self.narrow:
                _pattern_scores(
                    self.data, <const int*> self.indices, <const int*> self.indptr, <const int*> self.first,
                    self.label, weight, self.k, start, stop, S,
                )
            else:
                _pattern_scores(
                    self.data, <const Py_ssize_t*> self.indices, <const Py_ssize_t*> self.indptr,
                    <const Py_ssize_t*> self.first, self.label, weight, self.k, start, stop, S,
                )

    def add_moments(self, q, out, Py_ssize_t start, Py_ssize_t stop):
        """Add the moments of the rows ``start`` to ``stop`` under labels ``q`` (n, k) to ``out`` (weights,)."""
        cdef const double* Q = <const double*> matrix(q, "q", DOUBLE, self.n, self.k)
        cdef double* sums = <double*> vector_out(out, "out", DOUBLE, self.weights)
        _check_part(start, stop, self.n)
        with nogil:
            if self.narrow:
                _pattern_moments(
                    self.data, <const int*> self.indices, <const int*> self.indptr, <const int*> self.first,
                    self.label, Q, self.k, start, stop, sums,
                )
            else:
                _pattern_moments(
                    self.data, <const Py_ssize_t*> self.indices, <const Py_ssize_t*> self.indptr,
                    <const Py_ssize_t*> self.first, self.label, Q, self.k, start, stop, sums,
                )


cdef int _check_part(Py_ssize_t start, Py_ssize_t stop, Py_ssize_t n) except -1:
    if not 0 <= start <= stop <= n:
        raise ValueError(f"start and stop must be rows in order, 0..{n}; got {start} and {stop}")
    return 0
