"""LU factors with pivoted rows and Cholesky's factor, for systems of a few dozen unknowns."""

from libc.math cimport fabs, sqrt
from nashlearn.kernels.checks cimport DOUBLE, INDEX, extent, matrix, matrix_out, vector, vector_out, within
from nashlearn.kernels.simd cimport simd_dot


cdef bint _bring_up(double* A, Py_ssize_t ld, Py_ssize_t n, Py_ssize_t k, Py_ssize_t* pivot) noexcept nogil:
    """Swap the row with the largest entry of column ``k`` into place; False where there is none."""
    cdef Py_ssize_t r, c, i = k
    cdef double best = fabs(A[k * ld + k]), kept
    for r in range(k + 1, n):
        if fabs(A[r * ld + k]) > best:
            best, i = fabs(A[r * ld + k]), r
    pivot[k] = i
    if i != k:
        for c in range(n):
            kept = A[k * ld + c]
            A[k * ld + c] = A[i * ld + c]
            A[i * ld + c] = kept
    return best > 0.0  # not for NaN either


cdef void _divide_below(double* A, Py_ssize_t ld, Py_ssize_t n, Py_ssize_t k) noexcept nogil:
    cdef double scale = 1.0 / A[k * ld + k]
    cdef Py_ssize_t r
    for r in range(k + 1, n):
        A[r * ld + k] *= scale


cdef bint lu_factor(double* A, Py_ssize_t ld, Py_ssize_t n, Py_ssize_t* pivot) noexcept nogil:
    # Two columns at a time: the rest of the matrix is read and written half as often.
    cdef Py_ssize_t k, r, c
    cdef double first, second
    cdef double* row
    cdef const double* top
    cdef const double* next
    for k in range(0, n, 2):
        if not _bring_up(A, ld, n, k, pivot):
            return False
        _divide_below(A, ld, n, k)
        if k + 1 == n:
            break
        for r in range(k + 1, n):
            A[r * ld + k + 1] -= A[r * ld + k] * A[k * ld + k + 1]
        if not _bring_up(A, ld, n, k + 1, pivot):
            return False
        _divide_below(A, ld, n, k + 1)
        top, next = A + k * ld, A + (k + 1) * ld
        row = A + (k + 1) * ld
        for c in range(k + 2, n):
            row[c] -= row[k] * top[c]
        for r in range(k + 2, n):
            row = A + r * ld
            first, second = row[k], row[k + 1]
            for c in range(k + 2, n):
                row[c] -= first * top[c] + second * next[c]
    return True


cdef void lu_solve(const double* A, Py_ssize_t ld, Py_ssize_t n, const Py_ssize_t* pivot, double* b) noexcept nogil:
    cdef Py_ssize_t i
    cdef double kept
    for i in range(n):
        kept = b[i]
        b[i] = b[pivot[i]]
        b[pivot[i]] = kept
    for i in range(n):
        b[i] -= simd_dot(A + i * ld, b, i)
    for i in range(n - 1, -1, -1):
        b[i] = (b[i] - simd_dot(A + i * ld + i + 1, b + i + 1, n - i - 1)) / A[i * ld + i]


cdef void lu_solve_transposed(
    const double* A, Py_ssize_t ld, Py_ssize_t n, const Py_ssize_t* pivot, double* b
) noexcept nogil:
    cdef Py_ssize_t i, j
    cdef double kept
    for i in range(n):
        b[i] /= A[i * ld + i]
        for j in range(i + 1, n):
            b[j] -= A[i * ld + j] * b[i]
    for i in range(n - 1, 0, -1):
        for j in range(i):
            b[j] -= A[i * ld + j] * b[i]
    for i in range(n - 1, -1, -1):
        kept = b[i]
        b[i] = b[pivot[i]]
        b[pivot[i]] = kept


cdef bint _root(double* L, Py_ssize_t ld, Py_ssize_t n, Py_ssize_t k, double least) noexcept nogil:
    """Finish column ``k``, and copy it into row ``k``; False where its pivot is too small."""
    cdef double* row = L + k * ld
    cdef double scale
    cdef Py_ssize_t r
    if not row[k] > least:
        return False
    row[k] = sqrt(row[k])
    scale = 1.0 / row[k]
    for r in range(k + 1, n):
        row[r] = L[r * ld + k] = L[r * ld + k] * scale
    return True


cdef Py_ssize_t _whole(double* L, Py_ssize_t ld, Py_ssize_t n, double least) noexcept nogil:
    """The factor in place, column by column; its transpose above the diagonal lets updates run along rows."""
    cdef Py_ssize_t k, r, c
    cdef double first, second
    cdef double* row
    cdef const double* top
    cdef const double* next
    for k in range(0, n, 2):  # two columns at a time, as above
        if not _root(L, ld, n, k, least):
            return k
        if k + 1 == n:
            break
        top, next = L + k * ld, L + (k + 1) * ld
        for r in range(k + 1, n):
            L[r * ld + k + 1] -= top[r] * top[k + 1]
        if not _root(L, ld, n, k + 1, least):
            return k + 1
        for r in range(k + 2, n):
            row = L + r * ld
            first, second = top[r], next[r]
            for c in range(k + 2, r + 1):
                row[c] -= first * top[c] + second * next[c]
    return n


cdef Py_ssize_t cholesky(
    const double* A, Py_ssize_t lda, double* L, Py_ssize_t ldl, Py_ssize_t start, Py_ssize_t n, double least
) noexcept nogil:
    cdef Py_ssize_t i, j
    cdef double left
    cdef double* row
    if start == 0:
        for i in range(n):
            for j in range(i + 1):
                L[i * ldl + j] = A[i * lda + j]
        return _whole(L, ldl, n, least)
    for i in range(start, n):
        row = L + i * ldl
        for j in range(i):
            row[j] = (A[i * lda + j] - simd_dot(row, L + j * ldl, j)) / L[j * ldl + j]
        left = A[i * lda + i] - simd_dot(row, row, i)
        if not left > least:
            return i
        row[i] = sqrt(left)
    return n


cdef void cholesky_solve(const double* L, Py_ssize_t ld, Py_ssize_t n, double* b) noexcept nogil:
    cdef Py_ssize_t i, j
    cdef const double* row
    for i in range(n):
        b[i] = (b[i] - simd_dot(L + i * ld, b, i)) / L[i * ld + i]
    for i in range(n - 1, -1, -1):
        row = L + i * ld
        b[i] /= row[i]
        for j in range(i):
            b[j] -= row[j] * b[i]


def factor_lu(A, pivot):
    """Overwrite ``A`` with its LU factors and ``pivot`` with the swaps of its rows; False where it is singular."""
    cdef Py_ssize_t n = extent(A, "A", 0)
    cdef double* a = <double*> matrix_out(A, "A", DOUBLE, n, n)
    cdef Py_ssize_t* rows = <Py_ssize_t*> vector_out(pivot, "pivot", INDEX, n)
    cdef bint regular
    with nogil:
        regular = lu_factor(a, n, n, rows)
    return regular


def solve_lu(A, pivot, b, bint transposed=False):
    """Overwrite ``b`` with the solution of the system, or the transposed one, whose LU factors ``A`` holds."""
    cdef Py_ssize_t n = extent(A, "A", 0)
    cdef const double* a = <const double*> matrix(A, "A", DOUBLE, n, n)
    cdef const Py_ssize_t* rows = <const Py_ssize_t*> vector(pivot, "pivot", INDEX, n)
    cdef double* x = <double*> vector_out(b, "b", DOUBLE, n)
    within(rows, n, n, "pivot")
    with nogil:
        if transposed:
            lu_solve_transposed(a, n, n, rows, x)
        else:
            lu_solve(a, n, n, rows, x)


def factor_cholesky(A, L, Py_ssize_t start, Py_ssize_t n, double least):
    """Rows ``start`` to ``n`` of the factor of ``A`` into ``L``, which may be ``A``; the first that fails, or n."""
    cdef Py_ssize_t size = extent(A, "A", 0), end
    cdef const double* a = <const double*> matrix(A, "A", DOUBLE, size, size)
    cdef double* factor = <double*> matrix_out(L, "L", DOUBLE, size, size)
    if not 0 <= start <= n <= size:
        raise ValueError(f"start and n must lie in 0..{size} in this order; got {start} and {n}")
    with nogil:
        end = cholesky(a, size, factor, size, start, n, least)
    return end


def solve_cholesky(L, Py_ssize_t n, b):
    """Overwrite the first ``n`` of ``b`` with the solution of the system whose factor is ``L``."""
    cdef Py_ssize_t size = extent(L, "L", 0)
    cdef const double* factor = <const double*> matrix(L, "L", DOUBLE, size, size)
    cdef double* x = <double*> vector_out(b, "b", DOUBLE, -1)
    if not 0 <= n <= min(size, extent(b, "b", 0)):
        raise ValueError(f"n must be at most the sizes of L and b; got {n}")
    with nogil:
        cholesky_solve(factor, size, n, x)
