"""Labellings of a graph: read off messages, and improved node by node."""

from libc.math cimport INFINITY, fabs
from libc.string cimport memcpy, memset
from nashlearn.kernels.checks cimport DOUBLE, INDEX, cube, extent, matrix, vector, vector_out, within
from nashlearn.kernels.graphs cimport Graph, other_end, read_graph, read_tables
from nashlearn.kernels.scratch cimport Scratch

cdef enum:
    _PASSES = 10000


cdef void _add_pairs(
    const Graph* g, Py_ssize_t i, const double* T, Py_ssize_t apart, Py_ssize_t k, Py_ssize_t label, double* x
) noexcept nogil:
    """Add to ``x`` (k,) the scores with the label of the other end of the edge that is entry ``i`` of a node's list."""
    cdef Py_ssize_t a
    if apart:
        T += g.table[g.member[i]] * apart
    if g.side[i] == 0:
        for a in range(k):
            x[a] += T[a * k + label]
    else:
        for a in range(k):
            x[a] += T[label * k + a]


def decode(g, f, T, mu, order, labels):
    """Label nodes in ``order``, each best for the labels given before and the messages ``mu`` (m, 2, k) of the rest.

    ``f`` (n, k) scores nodes; ``T`` (m, k, k) edges, or one table all of them. Cost: O(k) an edge and end.
    """
    cdef Graph graph
    cdef Py_ssize_t n = extent(f, "f", 0), k = extent(f, "f", 1), size = extent(order, "order", 0)
    cdef Py_ssize_t a, i, r, u, v, chosen, apart
    read_graph(g, n, &graph)
    cdef const double* scores = <const double*> matrix(f, "f", DOUBLE, n, k)
    cdef const double* tables = read_tables(T, "T", &graph, k, &apart)
    cdef const double* messages = <const double*> cube(mu, "mu", DOUBLE, graph.m, 2, k)
    cdef const Py_ssize_t* listed = <const Py_ssize_t*> vector(order, "order", INDEX, size)
    cdef Py_ssize_t* found = <Py_ssize_t*> vector_out(labels, "labels", INDEX, n)
    cdef Scratch memory = Scratch(k * sizeof(double)), marks = Scratch(n)
    cdef double* x = <double*> memory.at
    cdef unsigned char* done = <unsigned char*> marks.at
    cdef const double* told
    cdef double best
    within(listed, size, n, "order")
    with nogil:
        memset(done, 0, n)
        for r in range(size):
            v = listed[r]
            memcpy(x, scores + v * k, k * sizeof(double))
            for i in range(graph.start[v], graph.start[v + 1]):
                u = other_end(&graph, i)
                if done[u]:
                    _add_pairs(&graph, i, tables, apart, k, found[u], x)
                else:
                    told = messages + (2 * graph.member[i] + graph.side[i]) * k
                    for a in range(k):
                        x[a] += told[a]
            best, chosen = -INFINITY, 0
            for a in range(k):
                if x[a] > best:
                    best, chosen = x[a], a
            found[v] = chosen
            done[v] = True


def improve(g, f, T, labels):
    """Change single labels while that raises the score. Cost of a pass over the nodes: O(k) an edge and end.

    Passes are counted: where scores cancel to rounding, changes that seem to raise the score might never end.
    """
    cdef Graph graph
    cdef Py_ssize_t n = extent(f, "f", 0), k = extent(f, "f", 1), a, i, v, best, apart, turn
    read_graph(g, n, &graph)
    cdef const double* scores = <const double*> matrix(f, "f", DOUBLE, n, k)
    cdef const double* tables = read_tables(T, "T", &graph, k, &apart)
    cdef Py_ssize_t* found = <Py_ssize_t*> vector_out(labels, "labels", INDEX, n)
    cdef Scratch memory = Scratch(k * sizeof(double))
    cdef double* x = <double*> memory.at
    cdef bint changed = True
    within(found, n, k, "labels")
    with nogil:
        for turn in range(_PASSES):
            if not changed:
                break
            changed = False
            for v in range(n):
                memcpy(x, scores + v * k, k * sizeof(double))
                for i in range(graph.start[v], graph.start[v + 1]):
                    _add_pairs(&graph, i, tables, apart, k, found[other_end(&graph, i)], x)
                best = found[v]
                for a in range(k):
                    if x[a] > x[best] + 1e-12 * fabs(x[best]):
                        best = a
                if best != found[v]:
                    found[v] = best
                    changed = True
