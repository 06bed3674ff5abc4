"""Euclidean projection onto the arborescence polytope."""

from nashlearn.kernels.tree_cuts cimport Flow
from nashlearn.kernels.tree_map cimport Workspace

cdef struct Cuts:  # in use, with their multipliers and the arrays of the Newton steps
    Py_ssize_t room  # for so many cuts, K
    unsigned char* members  # (K, n) tokens of each set
    unsigned char* free  # (K) whether an equality
    double* lam  # (K) multipliers
    double* inner  # (K, n + 1) the members as 0 and 1, with the root: without branches in the inner loops
    double* grad  # (K)
    double* trial  # (K) multipliers tried
    double* trial_grad  # (K)
    double* step  # (K)
    double* H  # (K, K)
    double* crossing  # (K) scratch
    Py_ssize_t* inside  # (K) scratch: cuts that an arc crosses
    double* a  # (n + 1) one row of shifted scores
    double* x  # (n, n + 1) the point
    double* slope  # (n, n + 1)

# Room for 3 n + 8 cuts of n tokens, laid out from the address on.
cdef Cuts new_cuts(Py_ssize_t n, size_t* at) noexcept nogil
# The cuts that the projection of w needs, with their multipliers in cuts.lam and the point in cuts.x; their number, -1
# where there is no tree. Loose multipliers are good to three digits. w is changed: each row is shifted to the largest
# score 0, which moves no projection. What counts as exact is written; heads (n) is scratch.
cdef Py_ssize_t price_cuts(
    double* w,
    Py_ssize_t n,
    bint single_root,
    bint loose,
    Py_ssize_t* heads,
    const Workspace* work,
    const Cuts* cuts,
    const Flow* flow,
    double* exact,
) noexcept nogil
