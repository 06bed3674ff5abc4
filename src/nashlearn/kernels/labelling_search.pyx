"""The paths of an exact search among labellings by what they fall short of a bound.

See :mod:`nashlearn.games.networks.search`. Each step assigns a label to the node with the fewest left, charges it to
the neighbours, and removes labels that cannot be within the limit, then labels without a partner at some neighbour,
until nothing changes [larrosa2004]_. Cost of a step: a few passes over the tables of the edges that are open.
"""

from threading import Lock

from libc.math cimport INFINITY, isfinite
from libc.string cimport memcpy
from nashlearn.kernels.checks cimport DOUBLE, INDEX, cube, extent, matrix, vector_out
from nashlearn.kernels.graphs cimport Graph, other_end, read_graph
from nashlearn.kernels.scratch cimport Scratch, doubles, indices, marks


cdef struct State:
    Graph g
    Py_ssize_t k
    Py_ssize_t degree
    const double* pair  # (m, k, k) deficits
    double* cost  # (n, k) own deficits and those with neighbours that are settled
    unsigned char* left  # (n, k) whether a label is
    unsigned char* open  # (n,)
    Py_ssize_t* label  # (n,)
    Py_ssize_t* node  # (n,) the node of each level
    Py_ssize_t* order  # (n, k) its labels, the cheapest first
    Py_ssize_t* size  # (n,) how many they are
    Py_ssize_t* tried  # (n,) and how many were tried
    double* total  # (n + 1,) charges of the levels before
    double* saved  # (n, degree, k) the neighbours' costs before
    Py_ssize_t* removed  # (n k,) labels removed, in order
    Py_ssize_t* mark  # (n + 1,) how many were removed before each level
    double* least  # (n,)
    Py_ssize_t level
    Py_ssize_t gone  # labels removed
    bint deeper  # whether the level is yet to be opened


cdef size_t _lay(State* s, size_t at) noexcept nogil:
    cdef size_t begin = at
    cdef Py_ssize_t n = s.g.n, k = s.k
    s.cost, s.total, s.saved, s.least = (
        doubles(&at, n * k), doubles(&at, n + 1), doubles(&at, n * s.degree * k), doubles(&at, n)
    )
    s.label, s.node, s.order, s.size = indices(&at, n), indices(&at, n), indices(&at, n * k), indices(&at, n)
    s.tried, s.removed, s.mark = indices(&at, n), indices(&at, n * k), indices(&at, n + 1)
    s.left, s.open = marks(&at, n * k), marks(&at, n)
    return at - begin


cdef inline void _remove(State* s, Py_ssize_t x) noexcept nogil:
    s.left[x] = False
    s.removed[s.gone] = x
    s.gone += 1


cdef bint _partners(State* s, Py_ssize_t e, Py_ssize_t side, double slack) noexcept nogil:
    """Remove labels of an edge's end that no label of the other's goes with; whether there were any."""
    cdef Py_ssize_t a, b, k = s.k, u = s.g.ends[2 * e + side], v = s.g.ends[2 * e + 1 - side]
    cdef Py_ssize_t across = 1 if side == 0 else k, along = k if side == 0 else 1
    cdef const double* pair = s.pair + e * k * k
    cdef const double* cost = s.cost + v * k
    cdef const unsigned char* left = s.left + v * k
    cdef double room
    cdef bint found, changed = False
    for a in range(k):
        if not s.left[u * k + a]:
            continue
        room = slack - (s.cost[u * k + a] - s.least[u]) + s.least[v]
        found = False
        for b in range(k):
            if left[b] and pair[a * along + b * across] + cost[b] <= room:
                found = True
                break
        if not found:
            _remove(s, u * k + a)
            changed = True
    return changed


cdef bint _tighten(State* s, double total, double limit) noexcept nogil:
    """Remove what cannot be within ``limit``, until nothing changes; whether something may be."""
    cdef Py_ssize_t v, a, e, k = s.k
    cdef double low, slack, best
    cdef bint changed = True
    while changed:
        changed = False
        low = total
        for v in range(s.g.n):
            if s.open[v]:
                best = INFINITY
                for a in range(v * k, v * k + k):
                    if s.left[a] and s.cost[a] < best:
                        best = s.cost[a]
                s.least[v] = best
                low += best
        slack = limit - low
        if not slack >= 0.0:
            return False
        for v in range(s.g.n):
            if s.open[v]:
                for a in range(v * k, v * k + k):
                    if s.left[a] and s.cost[a] - s.least[v] > slack:
                        _remove(s, a)
        for e in range(s.g.m):
            if s.open[s.g.ends[2 * e]] and s.open[s.g.ends[2 * e + 1]]:
                changed |= _partners(s, e, 0, slack)
                changed |= _partners(s, e, 1, slack)
    return True


cdef bint _deepen(State* s) noexcept nogil:
    """Open a level with the node that has the fewest labels left; false where none is open."""
    cdef Py_ssize_t v, a, i, size, k = s.k, chosen = -1, fewest = k + 1
    cdef Py_ssize_t* order = s.order + s.level * k
    cdef const double* cost
    for v in range(s.g.n):
        if s.open[v]:
            size = 0
            for a in range(v * k, v * k + k):
                size += s.left[a]
            if size < fewest:
                chosen, fewest = v, size
    if chosen < 0:
        return False
    cost, size = s.cost + chosen * k, 0
    for a in range(k):
        if s.left[chosen * k + a]:
            i = size
            while i > 0 and cost[order[i - 1]] > cost[a]:
                order[i] = order[i - 1]
                i -= 1
            order[i] = a
            size += 1
    s.node[s.level], s.size[s.level], s.tried[s.level] = chosen, size, 0
    return True


cdef void _back(State* s, Py_ssize_t level) noexcept nogil:
    """Undo the choice of a level."""
    cdef Py_ssize_t i, u, k = s.k, v = s.node[level], first = s.g.start[v]
    for i in range(first, s.g.start[v + 1]):
        u = other_end(&s.g, i)
        if s.open[u]:
            memcpy(s.cost + u * k, s.saved + (level * s.degree + i - first) * k, k * sizeof(double))
    s.open[v] = True
    while s.gone > s.mark[level]:
        s.gone -= 1
        s.left[s.removed[s.gone]] = True


cdef void _choose(State* s, Py_ssize_t level) noexcept nogil:
    """Take the next label of a level and charge it to the neighbours."""
    cdef Py_ssize_t b, i, u, k = s.k, v = s.node[level], first = s.g.start[v]
    cdef Py_ssize_t a = s.order[level * k + s.tried[level]]
    cdef const double* pair
    cdef double* cost
    s.tried[level] += 1
    s.mark[level] = s.gone
    s.open[v] = False
    s.label[v] = a
    s.total[level + 1] = s.total[level] + s.cost[v * k + a]
    for i in range(first, s.g.start[v + 1]):
        u = other_end(&s.g, i)
        if s.open[u]:
            cost, pair = s.cost + u * k, s.pair + s.g.member[i] * k * k
            memcpy(s.saved + (level * s.degree + i - first) * k, cost, k * sizeof(double))
            for b in range(k):
                cost[b] += pair[a * k + b] if s.g.side[i] == 0 else pair[b * k + a]


cdef bint _walk(State* s, double* limit, double rounding, Py_ssize_t* best, Py_ssize_t steps) noexcept nogil:
    """Take up to ``steps`` steps, lowering ``limit``; whether the search has come to its end."""
    cdef Py_ssize_t step, level
    cdef bint complete
    for step in range(steps):
        level, complete = s.level, False
        if s.deeper:
            s.deeper = False
            complete = not _deepen(s)
            if complete and s.total[level] <= limit[0]:
                memcpy(best, s.label, s.g.n * sizeof(Py_ssize_t))
                limit[0] = s.total[level] - rounding
        if complete or s.tried[level] == s.size[level]:
            s.level -= 1
            if s.level < 0:
                return True
            _back(s, s.level)
            continue
        _choose(s, level)
        if _tighten(s, s.total[level + 1], limit[0]):
            s.level, s.deeper = level + 1, True
        else:
            _back(s, level)
    return False


cdef class Path:
    """A path of the search: what is left of the labels, their charges, and how to go back.

    A copy starts over, which costs its time and changes no answer.

    Parameters
    ----------
    g : Incidence
    node, pair : ndarray (n, k), (m, k, k)
        Deficits of labels and pairs, inf where forbidden.
    limit : float
        What deficits may add up to.
    """

    cdef State state
    cdef Scratch memory
    cdef object kept  # what it was made of: the state holds addresses
    cdef object lock  # one thread at a time

    def __cinit__(self, g, node, pair, double limit):
        cdef State* s = &self.state
        cdef Py_ssize_t v, a, n = extent(node, "node", 0), k = extent(node, "node", 1)
        cdef const double* own = <const double*> matrix(node, "node", DOUBLE, n, k)
        self.kept, self.lock = (g, node, pair, limit), Lock()
        read_graph(g, n, &s.g)
        s.k, s.degree = k, 0
        s.pair = <const double*> cube(pair, "pair", DOUBLE, s.g.m, k, k)
        for v in range(n):
            s.degree = max(s.degree, s.g.start[v + 1] - s.g.start[v])
        self.memory = Scratch(_lay(s, 0))
        _lay(s, <size_t> self.memory.at)
        s.gone, s.deeper = 0, True
        with nogil:
            memcpy(s.cost, own, n * k * sizeof(double))
            for a in range(n * k):
                s.left[a] = isfinite(own[a])
            for v in range(n):
                s.open[v], s.label[v] = True, 0
            s.total[0] = 0.0
            s.level = 0 if _tighten(s, 0.0, limit) else -1

    def __reduce__(self):
        return Path, self.kept

    def walk(self, double limit, double rounding, best, Py_ssize_t steps):
        """Take up to ``steps`` steps; the new limit and whether the search has come to its end.

        ``best`` (n,) gets each labelling within the limit, which then falls by ``rounding`` below what that one lacks.
        """
        cdef Py_ssize_t* found = <Py_ssize_t*> vector_out(best, "best", INDEX, self.state.g.n)
        cdef bint over = True
        if not rounding >= 0.0:  # the limit would not fall
            raise ValueError(f"rounding must not be negative; got {rounding}")
        with self.lock:
            if self.state.level >= 0:
                with nogil:
                    over = _walk(&self.state, &limit, rounding, found, steps)
        return limit, bool(over)
