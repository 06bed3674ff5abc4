"""Tables and messages of one network's tree of cliques, on a desk with room for them."""

from libc.math cimport INFINITY
from nashlearn.kernels.junctions cimport Junctions

cdef struct Desk:  # of one network, its rows and edges first
    Py_ssize_t k, options, row, edges
    double eps
    const double* f
    const double* T
    Py_ssize_t apart  # entries between the tables of two edges: 0 where they share one
    double* p
    double* q
    double* E  # all tables
    double* inside  # messages to parents, and from them
    double* outside
    double* lift  # what replies add to the scores of nodes
    double* room
    double* b  # of the largest table, three times
    double* z
    double* u
    double* stack
    double* singles
    Py_ssize_t* entry

cdef inline Py_ssize_t power(Py_ssize_t k, Py_ssize_t count) noexcept nogil:
    cdef Py_ssize_t i, found = 1
    for i in range(count):
        found *= k
    return found

cdef inline double finite(double top) noexcept nogil:
    return top if top > -INFINITY else 0.0

# Lay out room for a network of so many nodes, entries of tables and of messages; returns its bytes.
cdef size_t lay_desk(
    Junctions t, Desk* d, Py_ssize_t nodes, Py_ssize_t entries, Py_ssize_t messages, size_t at
) noexcept
# Write into u what replies add to the joint states of some nodes.
cdef void add_up_lifts(const Desk* d, const Py_ssize_t* nodes, Py_ssize_t count) noexcept nogil
# Write the table of clique c.
cdef void build_table(Junctions t, const Desk* d, Py_ssize_t c) noexcept nogil
# out = eps log sum exp(b / eps) over columns, or over rows; b is lost.
cdef void pool_rows(const Desk* d, Py_ssize_t rows, Py_ssize_t columns, double* out) noexcept nogil
cdef void pool_columns(const Desk* d, Py_ssize_t rows, Py_ssize_t columns, double* out) noexcept nogil
# Write into b the table of clique c with its children's messages but that of skip; with what its nodes' replies add
# where lifted, with what lies outside where around.
cdef void fill_table(
    Junctions t, const Desk* d, Py_ssize_t c, Py_ssize_t skip, bint lifted, bint around
) noexcept nogil
# Renew a message.
cdef void tell_parent(Junctions t, const Desk* d, Py_ssize_t c) noexcept nogil
cdef void tell_child(Junctions t, const Desk* d, Py_ssize_t c) noexcept nogil
