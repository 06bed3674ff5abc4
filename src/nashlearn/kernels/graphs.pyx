"""Checks of graphs and of their edges' tables."""

from nashlearn.kernels.checks cimport DOUBLE, INDEX, cube, extent, matrix, rising, vector, within


cdef Py_ssize_t graph_size(object g) except -1:
    if not isinstance(g, tuple) or len(g) != 5:
        raise TypeError(f"g must be the five arrays of a graph; got {type(g).__name__}")
    return max(extent(g[2], "g.start", 0) - 1, 0)


cdef int read_graph(object g, Py_ssize_t n, Graph* graph) except -1:
    if n != graph_size(g):
        raise ValueError(f"g must have {n} nodes; got {graph_size(g)}")
    ends, table, start, member, side = g
    cdef Py_ssize_t v, i, e, before, m = extent(ends, "g.ends", 0)
    graph.n, graph.m = n, m
    graph.ends = <const Py_ssize_t*> matrix(ends, "g.ends", INDEX, m, 2)
    graph.table = <const Py_ssize_t*> vector(table, "g.table", INDEX, m)
    graph.start = <const Py_ssize_t*> vector(start, "g.start", INDEX, n + 1)
    graph.member = <const Py_ssize_t*> vector(member, "g.member", INDEX, 2 * m)
    graph.side = <const Py_ssize_t*> vector(side, "g.side", INDEX, 2 * m)
    within(graph.ends, 2 * m, n, "g.ends")
    rising(graph.start, n, 2 * m, "g.start")
    within(graph.member, 2 * m, m, "g.member")
    within(graph.side, 2 * m, 2, "g.side")
    for e in range(m):
        if graph.ends[2 * e] == graph.ends[2 * e + 1]:
            raise ValueError("g must have edges between different nodes; ends has one that is a loop")
    for v in range(n):
        before = -1
        for i in range(graph.start[v], graph.start[v + 1]):
            e = 2 * graph.member[i] + graph.side[i]
            if graph.ends[e] != v or e <= before:
                raise ValueError(f"g must list the edges of each node once, in order; not so at node {v}")
            before = e
    return 0


cdef const double* read_tables(
    object T, str name, const Graph* graph, Py_ssize_t k, Py_ssize_t* apart
) except NULL:
    cdef Py_ssize_t number = extent(T, name, 0)
    cdef const double* found = <const double*> cube(T, name, DOUBLE, number, k, k)
    apart[0] = k * k if number != 1 else 0
    if number != 1:
        within(graph.table, graph.m, number, "g.table")
    return found
