"""Losses with a matrix: their proximal step and its Jacobian, whatever the matrix."""

from nashlearn.kernels.loss cimport Loss

cdef class MatrixLoss(Loss):
    cdef readonly object L  # (options, k), float64, which nobody writes to
    cdef const double* entries  # its address

    # Take a matrix and the sizes that it has.
    cdef int take(self, object L) except -1

# Bytes of room that the two functions below need.
cdef size_t prox_room(Py_ssize_t options, Py_ssize_t k) noexcept nogil
# Write the proximal step of L (options, k) at g into q, which holds a start, and its p.
cdef void cost_prox(
    Py_ssize_t options, Py_ssize_t k, const double* L, const double* g, double a, double* q, double* p, void* room
) noexcept nogil
# Generalised Jacobian of the proximal step: a projector onto what the supports of q and p allow, over a.
cdef Py_ssize_t cost_tangent(
    Py_ssize_t options, Py_ssize_t k, const double* L, double a, const double* q, const unsigned char* tight,
    double* jacobian, void* room
) noexcept nogil
