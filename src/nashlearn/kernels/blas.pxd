"""Products of matrices by the BLAS that SciPy brings, for matrices in rows (C order). No Python, no lock."""

# C = alpha op(A) op(B) + beta C, with op(A) (m, k) and op(B) (k, n); ld* is the distance between two rows.
cdef void gemm(
    bint transpose_a, bint transpose_b, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, double alpha, const double* A,
    Py_ssize_t lda, const double* B, Py_ssize_t ldb, double beta, double* C, Py_ssize_t ldc
) noexcept nogil
# y = alpha op(A) x + beta y, with A (m, n) before it is transposed.
cdef void gemv(
    bint transpose, Py_ssize_t m, Py_ssize_t n, double alpha, const double* A, Py_ssize_t lda, const double* x,
    double beta, double* y
) noexcept nogil
