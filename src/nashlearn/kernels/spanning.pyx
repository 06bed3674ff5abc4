"""Kruskal's algorithm: the best spanning tree of a graph from its edges in order of their scores."""

from libc.string cimport memset
from nashlearn.kernels.checks cimport INDEX, MARK, extent, matrix, vector, vector_out, within
from nashlearn.kernels.scratch cimport Scratch

cdef Py_ssize_t _MOST = (<Py_ssize_t> 1) << 31  # nodes: more would not fit into memory, and far more not into a size


cdef Py_ssize_t _find(Py_ssize_t* parent, Py_ssize_t u) noexcept nogil:
    """The node that stands for the component of ``u``; paths are halved on the way."""
    while parent[u] != u:
        parent[u] = parent[parent[u]]
        u = parent[u]
    return u


def kruskal(order, allowed, edges, Py_ssize_t n, chosen):
    """Take edges in ``order`` that are allowed and close no cycle among ``n`` nodes; how many were taken.

    ``order``, ``allowed`` and ``chosen`` are (m), the ``edges`` (m, 2) pairs of nodes. Cost: next to O(m).
    """
    cdef Py_ssize_t i, e, a, b, taken = 0, m = extent(edges, "edges", 0), size = extent(order, "order", 0)
    cdef const Py_ssize_t* listed = <const Py_ssize_t*> vector(order, "order", INDEX, size)
    cdef const unsigned char* open = <const unsigned char*> vector(allowed, "allowed", MARK, m)
    cdef const Py_ssize_t* ends = <const Py_ssize_t*> matrix(edges, "edges", INDEX, m, 2)
    cdef unsigned char* marked = <unsigned char*> vector_out(chosen, "chosen", MARK, m)
    cdef Scratch memory
    cdef Py_ssize_t* parent
    if not 0 <= n <= _MOST:
        raise ValueError(f"n must lie in 0..{_MOST}; got {n}")
    within(listed, size, m, "order")
    within(ends, 2 * m, n, "edges")
    memory = Scratch(n * sizeof(Py_ssize_t))
    parent = <Py_ssize_t*> memory.at
    with nogil:
        for i in range(n):
            parent[i] = i
        memset(marked, 0, m)
        for i in range(size):
            e = listed[i]
            a, b = _find(parent, ends[2 * e]), _find(parent, ends[2 * e + 1])
            if open[e] and a != b:
                parent[a] = b
                marked[e] = True
                taken += 1
    return taken
