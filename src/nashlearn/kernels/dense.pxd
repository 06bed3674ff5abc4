"""Small dense systems inside compiled solvers: LAPACK's calls cost more than they do. Rows lie ``ld`` apart."""

# Overwrite A (n, n) with its factors, rows pivoted; False where it is singular. Cost: 2/3 n^3.
cdef bint lu_factor(double* A, Py_ssize_t ld, Py_ssize_t n, Py_ssize_t* pivot) noexcept nogil
# Overwrite b (n) with the solution of the system whose factors A holds.
cdef void lu_solve(const double* A, Py_ssize_t ld, Py_ssize_t n, const Py_ssize_t* pivot, double* b) noexcept nogil
# The same for the transposed system.
cdef void lu_solve_transposed(
    const double* A, Py_ssize_t ld, Py_ssize_t n, const Py_ssize_t* pivot, double* b
) noexcept nogil
# Rows start to n of the factor of A into L, which may be A; the first whose pivot does not exceed least, or n.
# Only the lower triangles matter; what lies above that of L is lost. Cost: n^3 / 3.
cdef Py_ssize_t cholesky(
    const double* A, Py_ssize_t lda, double* L, Py_ssize_t ldl, Py_ssize_t start, Py_ssize_t n, double least
) noexcept nogil
# Overwrite b (n) with the solution of the system whose factor is L.
cdef void cholesky_solve(const double* L, Py_ssize_t ld, Py_ssize_t n, double* b) noexcept nogil
