from nashlearn.kernels.core_simplex cimport Core, Matrix
from nashlearn.kernels.loss cimport Certificate
from nashlearn.kernels.matrix_blocks cimport BlockMatrix, MatrixBlock
from nashlearn.kernels.matrix_temper cimport Temper
from nashlearn.kernels.quadratic cimport MatrixLoss

cdef class AnyCost(MatrixLoss):
    cdef Matrix matrix
    cdef const double* floor  # smallest entry of each column
    cdef double scale  # largest entry beyond that
    cdef size_t core_size  # bytes of a core
    # Note the sizes of the matrix.
    cdef int measure(self) except -1
    cdef Core core(self, void* room) noexcept nogil
    cdef void* beyond(self, void* room) noexcept nogil
    cdef double scaled(self, const double* f, double top, double* out) noexcept nogil
    cdef void begin_exactly(self, const Temper* t, double* p, void* room) noexcept nogil
    cdef bint begins(self, double* p) noexcept nogil
    cdef double opening(self, double m, double* p, Temper* t) noexcept nogil
    cdef double settle(self, double m, double gap, double* p, Temper* t, void* room) noexcept nogil
    cdef void certify(
        self, const double* f, double mu, double best, double gap, const Temper* t, double* q, Certificate* found
    ) noexcept nogil
    # Play one row, whose scores are any numbers.
    cdef void play_row(
        self, const double* f, double mu, double* p, double* q, Certificate* found, void* room
    ) noexcept nogil
    cdef bint small(self) noexcept nogil
    cdef void play_small(
        self, Py_ssize_t n, const double* f, double mu, double* p, double* q, Certificate* found, void* room
    ) noexcept nogil
    cdef void play_waiting(
        self, const BlockMatrix* L, MatrixBlock* waiting, const double* f, double mu, double* p, double* q,
        Certificate* found, void* room,
    ) noexcept nogil
    cdef void finish(
        self, const BlockMatrix* L, const MatrixBlock* block, Py_ssize_t i, const double* f, double mu, double* p,
        double* q, Certificate* found, void* room,
    ) noexcept nogil

cdef class Cost(AnyCost):
    cdef object kept  # the arrays that the addresses belong to
