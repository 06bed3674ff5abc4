"""Points near the arborescence polytope moved into it."""

from nashlearn.kernels.tree_cuts cimport Flow

# Move x (n, n + 1), arcs of which none is forbidden, into the polytope; how large a share of it was replaced.
# members (n, n) is scratch.
cdef double into_polytope(
    double* x, Py_ssize_t n, bint single_root, unsigned char* members, const Flow* flow
) noexcept nogil
