"""Trees of cliques, checked once; see the class for what its arrays hold."""

from nashlearn.kernels.scratch cimport Scratch

cdef class Junctions:
    cdef readonly Py_ssize_t k, size, n_graphs  # states of a node, cliques, graphs
    cdef object kept  # the arrays whose addresses are held
    cdef Scratch room
    cdef const Py_ssize_t* graphs
    cdef const Py_ssize_t* starts
    cdef const Py_ssize_t* scope
    cdef const Py_ssize_t* own
    cdef const Py_ssize_t* parent
    cdef const Py_ssize_t* child
    cdef const Py_ssize_t* sibling
    cdef const Py_ssize_t* pair_starts
    cdef const Py_ssize_t* pairs
    cdef const Py_ssize_t* places
    cdef const int* maps
    cdef Py_ssize_t* rows  # of tables
    cdef Py_ssize_t* columns
    cdef Py_ssize_t* table  # where they and the messages begin, within their graph's
    cdef Py_ssize_t* message
    cdef Py_ssize_t* nodes  # of each graph, with edges, entries of tables and of messages
    cdef Py_ssize_t* edges
    cdef Py_ssize_t* entries
    cdef Py_ssize_t* messages
    cdef Py_ssize_t largest, widest  # entries and nodes of the largest clique

    cdef object _measure(self, Py_ssize_t mapped)
    cdef object _misplaced(self, Py_ssize_t c, Py_ssize_t g, Py_ssize_t mapped)
