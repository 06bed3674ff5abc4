"""Wolfe's method for the nearest point of the arborescence polytope."""

from nashlearn.kernels.tree_map cimport Workspace

cdef struct Search:  # what the method keeps of one sentence beside its trees
    double* slope  # (n, n + 1, labels) from the point towards the scores
    double* arc  # (n, n + 1)
    Py_ssize_t* label  # (n, n + 1)
    Py_ssize_t* code  # (n) head and label of each token as one number

cdef class Corral:  # the trees that a point is a mixture of; the room for them doubles as it is needed
    cdef Py_ssize_t n  # tokens at most
    cdef Py_ssize_t room  # trees
    cdef bint failed  # whether there was no memory to grow
    cdef void* memory
    cdef Py_ssize_t* V  # (room, n) codes of each tree
    cdef double* G  # (room, room) 1 + the number of arcs that two trees share
    cdef double* chol  # (room, room) Cholesky's factor of G
    cdef double* weight  # (room) in the mixture
    cdef double* worth  # (room) scores
    cdef double* best  # (room)
    cdef double* other  # (room)
    cdef bint grow(self, Py_ssize_t kept) noexcept nogil
    cdef size_t lay(self, size_t at) noexcept nogil

cdef Search new_search(Py_ssize_t n, Py_ssize_t labels, size_t* at) noexcept nogil
# The projection of w (n, n + 1, labels) into x; the Frank-Wolfe gap at which it ended. There must be a tree; forbidden
# arcs are -inf. heads (n) is scratch. Where memory is lacking, corral.failed is set.
cdef double nearest_point(
    const double* w,
    Py_ssize_t n,
    Py_ssize_t labels,
    bint single_root,
    double* x,
    Py_ssize_t* heads,
    const Workspace* work,
    const Search* search,
    Corral corral,
) noexcept nogil
