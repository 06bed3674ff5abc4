"""Wolfe's method for the nearest point of the arborescence polytope."""

from nashlearn.kernels.tree_map cimport Workspace

cdef struct Search:  # what the method keeps of one sentence beside its trees
    double* slope  # (n, n + 1, labels) from the point towards the scores
    double* arc  # (n, n + 1)
    Py_ssize_t* label  # (n, n + 1)
    Py_ssize_t* code  # (n) head and label of each token as one number

cdef struct Corral:  # the trees that a point is a mixture of; kept from one sentence to the next
    Py_ssize_t n  # tokens at most
    Py_ssize_t room  # trees; doubles as it is needed
    bint failed  # whether there was no memory to grow
    void* memory  # for its owner to free
    Py_ssize_t* V  # (room, n) codes of each tree
    double* G  # (room, room) 1 + the number of arcs that two trees share
    double* chol  # (room, room) Cholesky's factor of G
    double* weight  # (room) in the mixture
    double* worth  # (room) scores
    double* best  # (room)
    double* other  # (room)

# A corral without room for trees of up to n tokens.
cdef Corral new_corral(Py_ssize_t n) noexcept nogil
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
    Corral* corral,
) noexcept nogil
