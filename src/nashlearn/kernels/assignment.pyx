"""The best assignment of rows to columns, by shortest augmenting paths [jonker1987]_.

A score of ``-inf`` forbids its pair. The potentials returned with an assignment prove it optimal:
``u_i + v_j >= scores_ij`` everywhere, with equality on the pairs chosen. Cost: O(n^3), far less where rows disagree on
what is best.
"""

from libc.math cimport INFINITY
from libc.string cimport memset
from nashlearn.kernels.checks cimport DOUBLE, INDEX, cube, extent, matrix_out
from nashlearn.kernels.scratch cimport Scratch, doubles, indices, marks
from nashlearn.kernels.simd cimport simd_max


cdef struct Room:  # for a square of n rows
    double* square  # (n, n), used with partners only
    double* u
    double* v
    double* distance
    Py_ssize_t* column
    Py_ssize_t* owner
    Py_ssize_t* before
    Py_ssize_t* queue
    unsigned char* taken
    Py_ssize_t n


cdef Room _laid_out(const Sides* sides, size_t* at) noexcept nogil:
    cdef Room c
    cdef bint partial = sides.rows < sides.N1
    c.n = sides.rows + sides.columns if partial else sides.rows
    c.square = doubles(at, c.n * c.n if partial else 0)
    c.u, c.v, c.distance = doubles(at, c.n), doubles(at, c.n), doubles(at, c.n)
    c.column, c.owner = indices(at, c.n), indices(at, c.n)
    c.before, c.queue = indices(at, c.n), indices(at, c.n)
    c.taken = marks(at, sides.N2)
    return c


cdef size_t assignment_room(const Sides* sides) noexcept nogil:
    cdef size_t at = 0
    _laid_out(sides, &at)
    return at


cdef bint _greedy(const double* scores, Room* c) noexcept nogil:
    """Potentials from the best of each row, then of each column; tight pairs are taken as they come."""
    cdef Py_ssize_t i, j, n = c.n
    cdef const double* row
    for i in range(n):
        c.u[i] = simd_max(scores + i * n, n, -INFINITY)
        if c.u[i] == -INFINITY:
            return False
    for j in range(n):
        c.v[j] = -INFINITY
    for i in range(n):
        row = scores + i * n
        for j in range(n):
            c.v[j] = max(c.v[j], row[j] - c.u[i])
    for j in range(n):
        if c.v[j] == -INFINITY:
            return False
    for i in range(n):
        row = scores + i * n
        for j in range(n):
            if c.owner[j] < 0 and row[j] - c.u[i] - c.v[j] == 0.0:
                c.column[i], c.owner[j] = j, i
                break
    return True


cdef Py_ssize_t _shortest_path(const double* scores, Py_ssize_t root, Room* c) noexcept nogil:
    """Dijkstra from a free row to the nearest free column, over reduced costs; -1 where there is none.

    Columns already scanned lie in ``queue[:done]``; the potentials are brought up to date at the end.
    """
    cdef Py_ssize_t i = root, j, t, place, done = 0, n = c.n
    cdef double reached = 0.0, nearest, through, own
    cdef const double* row
    cdef const double* v = c.v
    cdef double* distance = c.distance
    cdef Py_ssize_t* queue = c.queue
    for j in range(n):
        distance[j], c.before[j], queue[j] = INFINITY, -1, j
    while True:
        nearest, place = INFINITY, -1
        row, own = scores + i * n, c.u[i]
        for t in range(done, n):
            j = queue[t]
            through = reached + (own + v[j] - row[j])
            if through < distance[j]:
                distance[j], c.before[j] = through, i
            if distance[j] < nearest or (distance[j] == nearest and place >= 0 and c.owner[j] < 0):
                nearest, place = distance[j], t
        if place < 0:
            return -1
        reached = nearest
        j = queue[place]
        queue[place], queue[done] = queue[done], j
        done += 1
        if c.owner[j] < 0:
            break
        i = c.owner[j]
    c.u[root] -= reached
    for t in range(done - 1):
        i = queue[t]
        c.u[c.owner[i]] -= reached - distance[i]
        c.v[i] += reached - distance[i]
    return j


cdef bint _assign(const double* scores, Room* c) noexcept nogil:
    """The column of each row of a square matrix, and the potentials, in the room; False where nothing is feasible."""
    cdef Py_ssize_t root, i, j, last, n = c.n
    for i in range(n):
        c.column[i] = c.owner[i] = -1
    if not _greedy(scores, c):
        return False
    for root in range(n):
        if c.column[root] >= 0:
            continue
        j = _shortest_path(scores, root, c)
        if j < 0:
            return False
        while True:
            i = c.before[j]
            c.owner[j] = i
            last = c.column[i]
            c.column[i], j = j, last
            if i == root:
                break
    return True


cdef void _add_partners(const Sides* sides, const double* scores, Room* c) noexcept nogil:
    """A square matrix with a partner for each element to stay alone with; partners are free to pair up."""
    cdef Py_ssize_t i, j, n1 = sides.rows, n2 = sides.columns
    cdef double* row
    for i in range(c.n):
        row = c.square + i * c.n
        for j in range(n2):
            row[j] = scores[i * sides.N2 + j] if i < n1 else -INFINITY
        for j in range(n2, c.n):
            row[j] = 0.0 if i >= n1 else -INFINITY
        if i < n1:
            row[n2 + i] = scores[i * sides.N2 + n2]
        else:
            row[i - n1] = scores[n1 * sides.N2 + i - n1]


cdef bint best_matching(
    const Sides* sides, const double* scores, Py_ssize_t* column, double* u, double* v, void* room
) noexcept nogil:
    cdef size_t at = <size_t> room
    cdef Room c = _laid_out(sides, &at)
    cdef Py_ssize_t i, j, n1 = sides.rows, n2 = sides.columns
    cdef bint partial = n1 < sides.N1
    cdef const double* square = scores
    if partial:
        _add_partners(sides, scores, &c)
        square = c.square
    if not _assign(square, &c):
        return False
    for i in range(n1):
        column[i] = c.column[i] if c.column[i] < n2 else -1
        u[i] = c.u[i] + (c.v[n2 + i] if partial else 0.0)
    for j in range(n2):
        v[j] = c.v[j] + (c.u[n1 + j] if partial else 0.0)  # partners' sum to 0 or more: pairs stay covered
    return True


cdef double matching_score(
    const Sides* sides, const double* scores, const Py_ssize_t* column, void* room
) noexcept nogil:
    cdef size_t at = <size_t> room
    cdef Room c = _laid_out(sides, &at)
    cdef Py_ssize_t i, j, rows = sides.rows, last = sides.N2 - 1
    cdef double total = 0.0
    if rows == sides.N1:
        for i in range(rows):
            total += scores[i * sides.N2 + column[i]]
        return total
    memset(c.taken, 0, sides.N2)
    for i in range(rows):
        j = column[i] if column[i] >= 0 else last
        c.taken[j] = True
        total += scores[i * sides.N2 + j]
    for j in range(last):
        if not c.taken[j]:
            total += scores[rows * sides.N2 + j]
    return total


cdef int checked_sides(object scores, bint partial, Sides* sides) except -1:
    cdef Py_ssize_t N1 = extent(scores, "scores", 1), N2 = extent(scores, "scores", 2)
    if partial and (N1 < 1 or N2 < 1):
        raise ValueError(f"scores must have a last row and a last column; got shape {scores.shape}")
    if not partial and N1 != N2:
        raise ValueError(f"scores must be square; got shape {scores.shape}")
    sides[0] = sides_of(N1, N2, partial)
    return 0


def argmax_each(scores, bint partial, column):
    """The best matching of each matrix of ``scores`` (b, N1, N2) into ``column`` (b, rows), -1 for who stays alone.

    Returns the first matrix without one, or -1. Where ``partial``, the last row and column are not to be matched.
    """
    cdef Sides sides
    checked_sides(scores, partial, &sides)
    cdef Py_ssize_t b, infeasible = -1, n = extent(scores, "scores", 0), size = sides.N1 * sides.N2
    cdef const double* f = <const double*> cube(scores, "scores", DOUBLE, n, sides.N1, sides.N2)
    cdef Py_ssize_t* found = <Py_ssize_t*> matrix_out(column, "column", INDEX, n, sides.rows)
    cdef Scratch own = Scratch((sides.rows + sides.columns) * sizeof(double))
    cdef Scratch room = Scratch(assignment_room(&sides))
    cdef size_t at = <size_t> own.at
    cdef double* u = doubles(&at, sides.rows)
    cdef double* v = doubles(&at, sides.columns)
    with nogil:
        for b in range(n):
            if not best_matching(&sides, f + b * size, found + b * sides.rows, u, v, room.at):
                infeasible = b
                break
    return infeasible
