"""A graph as kernels read it: see nashlearn.games.networks.stars.Incidence, which it is read from."""

cdef struct Graph:
    Py_ssize_t n
    Py_ssize_t m
    const Py_ssize_t* ends  # (m, 2)
    const Py_ssize_t* table  # (m,), which of the tables each edge has
    const Py_ssize_t* start  # (n + 1,)
    const Py_ssize_t* member  # edges at the nodes, those of node v from start[v] to start[v + 1]
    const Py_ssize_t* side  # which of the edge's ends the node is

# The number of nodes.
cdef Py_ssize_t graph_size(object g) except -1
# Read and check a graph of n nodes.
cdef int read_graph(object g, Py_ssize_t n, Graph* graph) except -1
# The address of tables (m, k, k), or of one (1, k, k) that all edges share; ``apart`` is the entries between two.
cdef const double* read_tables(
    object T, str name, const Graph* graph, Py_ssize_t k, Py_ssize_t* apart
) except NULL

# The other end of the edge that is entry i of a node's list.
cdef inline Py_ssize_t other_end(const Graph* g, Py_ssize_t i) noexcept nogil:
    return g.ends[2 * g.member[i] + 1 - g.side[i]]
