"""Products of matrices by the BLAS that SciPy brings.

The addresses are those that ``scipy.linalg.cython_blas`` offers to compiled code; they are looked up when this module
is loaded, so that SciPy is not needed to build it.
"""

from cpython.pycapsule cimport PyCapsule_GetName, PyCapsule_GetPointer
from libc.string cimport strstr

from scipy.linalg import cython_blas

ctypedef void (*Gemm)(
    char*, char*, int*, int*, int*, double*, double*, int*, double*, int*, double*, double*, int*
) noexcept nogil
ctypedef void (*Gemv)(char*, int*, int*, double*, double*, int*, double*, int*, double*, double*, int*) noexcept nogil


cdef void* _routine(str name) except NULL:
    capsule = cython_blas.__pyx_capi__[name]
    cdef const char* signature = PyCapsule_GetName(capsule)
    if strstr(signature, b"int *") == NULL:
        raise ImportError(f"scipy.linalg.cython_blas.{name} takes other integers than expected: {signature}")
    return PyCapsule_GetPointer(capsule, signature)


cdef Gemm _gemm = <Gemm> _routine("dgemm")
cdef Gemv _gemv = <Gemv> _routine("dgemv")


cdef void gemm(
    bint transpose_a, bint transpose_b, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, double alpha, const double* A,
    Py_ssize_t lda, const double* B, Py_ssize_t ldb, double beta, double* C, Py_ssize_t ldc
) noexcept nogil:
    # By columns, as BLAS reads, the arrays are their transposes: C' = op(B)' op(A)'.
    cdef char first = c"t" if transpose_b else c"n"
    cdef char second = c"t" if transpose_a else c"n"
    cdef int rows = <int> n, columns = <int> m, inner = <int> k, la = <int> lda, lb = <int> ldb, lc = <int> ldc
    if m > 0 and n > 0:
        _gemm(
            &first, &second, &rows, &columns, &inner, &alpha, <double*> B, &lb, <double*> A, &la, &beta, C, &lc
        )


cdef void gemv(
    bint transpose, Py_ssize_t m, Py_ssize_t n, double alpha, const double* A, Py_ssize_t lda, const double* x,
    double beta, double* y
) noexcept nogil:
    cdef char first = c"n" if transpose else c"t"
    cdef int rows = <int> n, columns = <int> m, la = <int> lda, one = 1
    if m > 0 and n > 0:
        _gemv(&first, &rows, &columns, &alpha, <double*> A, &la, <double*> x, &one, &beta, y, &one)
