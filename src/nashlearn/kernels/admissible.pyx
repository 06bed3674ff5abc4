"""Which pairs some matching uses, and which columns' sums follow from the others.

Forbidden pairs can rule out more than themselves: a pair that no feasible matching uses is 0 in the whole polytope.
Think of a matching as a flow from rows to columns. A pair can carry flow if and only if its column leads back to
its row along pairs in use, taken backwards, and allowed pairs: both lie in one strongly connected component of the
residual graph (the coarse half of the Dulmage-Mendelsohn decomposition). In a component that has neither the row of
entering nor the column of leaving, rows and columns sum to the same, so that one column is redundant.
Cost: O(N^2) for each component of the residual graph, N = N1 + N2.
"""

from libc.math cimport INFINITY
from libc.string cimport memset
from nashlearn.kernels.scratch cimport indices, marks


cdef struct Graph:  # rows (first) and columns (after them) of a matching's residual graph
    unsigned char* arc  # (N, N)
    unsigned char* back  # (N, N) its transpose
    unsigned char* ahead
    unsigned char* behind
    Py_ssize_t* component
    Py_ssize_t* stack
    Py_ssize_t N


cdef Graph _laid_out(const Sides* sides, size_t* at) noexcept nogil:
    cdef Graph c
    c.N = sides.N1 + sides.N2
    c.arc, c.back = marks(at, c.N * c.N), marks(at, c.N * c.N)
    c.ahead, c.behind = marks(at, c.N), marks(at, c.N)
    c.component, c.stack = indices(at, c.N), indices(at, c.N)
    return c


cdef size_t admissible_room(const Sides* sides) noexcept nogil:
    cdef size_t at = 0
    _laid_out(sides, &at)
    return at


cdef void _connect(const Sides* sides, const double* scores, const Py_ssize_t* column, Graph* c) noexcept nogil:
    cdef Py_ssize_t i, j, N = c.N, N1 = sides.N1, rows = sides.rows, leaving = N1 + sides.columns
    memset(c.arc, 0, N * N)
    for i in range(N1):
        for j in range(sides.N2):
            c.arc[i * N + N1 + j] = scores[i * sides.N2 + j] > -INFINITY
    if rows < N1:
        c.arc[rows * N + leaving] = True
        for j in range(N1, leaving):
            c.arc[j * N + rows] = True
    for i in range(rows):
        j = N1 + column[i] if column[i] >= 0 else leaving
        c.arc[j * N + i] = True
        if rows < N1 and j < leaving:
            c.arc[j * N + rows] = False  # a matched column does not enter
            c.arc[leaving * N + rows] = True
    for i in range(N):
        for j in range(N):
            c.back[j * N + i] = c.arc[i * N + j]


cdef void _reach(
    const unsigned char* arc, Py_ssize_t N, Py_ssize_t start, unsigned char* seen, Py_ssize_t* stack
) noexcept nogil:
    cdef Py_ssize_t a, b, size = 1
    memset(seen, 0, N)
    seen[start], stack[0] = True, start
    while size:
        size -= 1
        a = stack[size]
        for b in range(N):
            if arc[a * N + b] and not seen[b]:
                seen[b] = True
                stack[size] = b
                size += 1


cdef void admissible_pairs(
    const Sides* sides, const double* scores, const Py_ssize_t* column, unsigned char* keep, unsigned char* free,
    void* room
) noexcept nogil:
    cdef size_t at = <size_t> room
    cdef Graph c = _laid_out(sides, &at)
    cdef Py_ssize_t i, j, node, N1 = sides.N1, N2 = sides.N2, rows = sides.rows, columns = sides.columns
    cdef bint bound, void_
    _connect(sides, scores, column, &c)
    memset(free, 1, columns)
    for i in range(c.N):
        c.component[i] = -1
    for node in range(c.N):
        if c.component[node] >= 0:
            continue
        _reach(c.arc, c.N, node, c.ahead, c.stack)
        _reach(c.back, c.N, node, c.behind, c.stack)
        for i in range(c.N):
            if c.ahead[i] and c.behind[i]:
                c.component[i] = node
        bound = rows == N1 or not (c.component[rows] == node or c.component[N1 + columns] == node)
        for j in range(columns):
            if bound and c.component[N1 + j] == node:
                free[j] = False
                break
    for i in range(N1):
        for j in range(N2):
            void_ = i == rows and j == columns
            keep[i * N2 + j] = (
                scores[i * N2 + j] > -INFINITY and c.component[i] == c.component[N1 + j] and not void_
            )
