from nashlearn.kernels.core_simplex cimport Core, Matrix
from nashlearn.kernels.matrix_temper cimport Temper
from nashlearn.kernels.quadratic cimport MatrixLoss

cdef class Cost(MatrixLoss):
    cdef object kept  # the arrays that the addresses belong to
    cdef Matrix matrix
    cdef const double* floor  # smallest entry of each column
    cdef double scale  # largest entry beyond that
    cdef size_t core_size  # bytes of a core
    cdef Core core(self, void* room) noexcept nogil
    cdef void* beyond(self, void* room) noexcept nogil
    cdef double scaled(self, const double* f, double top, double* out) noexcept nogil
    cdef void begin_exactly(self, const Temper* t, double* p, void* room) noexcept nogil
