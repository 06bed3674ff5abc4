"""The sweep over the components of a forest, for whoever lays out its nodes and scores."""

from nashlearn.kernels.replies cimport Replies

# A tree in depth-first preorder, -1 for no parent, child or sibling; table[i] is that of the edge to the parent, read
# as (parent, child), or the other way where flipped.
cdef struct Forest:
    const Py_ssize_t* parent
    const Py_ssize_t* child
    const Py_ssize_t* sibling
    const Py_ssize_t* table
    const unsigned char* flipped

# Tables of edges: scores, NULL where those of marginals are not asked for, the largest of each, exp((T - top) / eps).
cdef struct Tables:
    const double* T
    const double* tops
    const double* W
    double eps

# What a sweep works on: rows of nodes first, k entries filled up with zeros to a width, then numbers of nodes, and rows
# for one node.
cdef struct Desk:
    Py_ssize_t k, width
    double* base  # exp(scores / eps), relative to the largest
    double* node  # that with the reply's lift
    double* below  # product of the children's messages, where there is not one alone
    double* up  # messages to parents
    double* outside  # what lies outside the node
    double* pair  # the parent's side of the edge to it
    double* scale  # of messages, what lies outside, marginals
    double* spread
    double* mass
    double* high  # largest scores, and what was taken off lifts
    double* lifted
    double* x
    double* c
    double* g
    double* own  # (k, width), 0 between components
    bint shared  # whether there is one table, which is here as (k, width), and turned
    double* table
    double* turned

# One component, nodes root .. end - 1; rows of scores f, replies p (so many options) and marginals q begin at its root.
# Marginals that will be stored in single precision are rounded to it at once, so that sums are of what is stored.
cdef struct Component:
    Py_ssize_t root, end
    bint branched, single
    const double* f
    double* p
    double* q
    Py_ssize_t options

# Room for components of up to so many nodes, whose edges share a table or do not.
cdef Desk new_desk(Py_ssize_t longest, Py_ssize_t k, bint shared, size_t* at) noexcept nogil
# Called once before the first component: the table W (k, k) is taken over where all edges share it.
cdef void clear_desk(Desk* desk, Py_ssize_t longest, const double* W) noexcept nogil
# So many rounds of the sweep: write p and q, add the edges' marginals divided by W, times weight, to E, and write the
# smoothed value at p, <p, L q>, its least over p, and <scores, q> into sums (4). False where scores are out of range:
# p and q are then of no use, E and sums untouched.
cdef bint play_component(
    Replies loss, const Forest* t, const Tables* tables, const Component* part, Py_ssize_t rounds, double weight,
    Desk* desk, double* E, double* sums
) noexcept nogil
