"""What the losses of ordered labels share: positions, and strategies that play a point among them."""

from nashlearn.kernels.quadratic cimport MatrixLoss

cdef class Ordered(MatrixLoss):
    cdef readonly object positions
    cdef const double* t  # their address

# Write NaN for a row that has one, and return it.
cdef double unknown_row(double* q, double* p, Py_ssize_t k) noexcept nogil
# Write the point c into p (k): mass on t[low] and t[low + 1] whose mean it is, or the nearer one where c lies outside.
cdef void play_point(const double* t, Py_ssize_t k, Py_ssize_t low, double c, double* p) noexcept nogil
# The lower of two neighbours that p plays, -1 where it plays one position alone.
cdef Py_ssize_t lower_of(const double* p, Py_ssize_t k) noexcept nogil
