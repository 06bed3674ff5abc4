"""Losses with a matrix: their proximal step and its Jacobian, whatever the matrix."""

from nashlearn.kernels.loss cimport Loss

cdef class MatrixLoss(Loss):
    cdef readonly object L  # (options, k), float64, which nobody writes to
    cdef const double* entries  # its address

    # Take a matrix and the sizes that it has.
    cdef int take(self, object L) except -1

cdef struct Prox:  # a proximal step under way
    double* W  # (most, k)
    double* T  # (most, most)
    double* b
    double* p_S
    double* d
    double* slack
    double* fall
    Py_ssize_t* R
    Py_ssize_t* S
    unsigned char* inside
    unsigned char* tight
    Py_ssize_t most, k, options

# A proximal step laid out from the address on.
cdef Prox new_prox(Py_ssize_t options, Py_ssize_t k, size_t* at) noexcept nogil
# Orthonormal basis of the normals on the labels R, r of them: ``1`` and ``L_t - L_S[0] = sum_m T_tm W_m`` for the other
# rows S, s in all, of which those of the first ``known`` are there already. Returns how many rows of S are independent,
# counted up to the first that is not.
cdef Py_ssize_t independent_normals(
    const double* L, Prox* c, Py_ssize_t r, Py_ssize_t known, Py_ssize_t s
) noexcept nogil
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
