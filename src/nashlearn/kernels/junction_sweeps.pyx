"""Sweeps on trees of cliques for many networks at once, in the log domain: any range of scores.

Cliques are as large as the graph allows, so that a clique *owns* the nodes that its parent does not know: all of them
where every two nodes are joined, one at a time on a narrow graph. Its table has a row for each joint state of its own
nodes and a column for each joint state of the others, its separator. One round, depth first, is for each clique

    r(a) = eps log sum_s exp((table + children's messages + what lies outside)(a, s) / eps),

and on ``r`` the replies of its own nodes, each exact at the others'. These are split into halves, x and y: with the
replies of y fixed, ``r`` is pooled over y once for all nodes of x, and so on within x. So a round over o nodes of k
states costs 2 k^o exponentials and not o k^o; so do the marginals of all pairs, which are sums of slices.
"""

from libc.math cimport INFINITY, log
from libc.string cimport memcpy, memset
from nashlearn.kernels.checks cimport (
    DOUBLE,
    INDEX,
    cube,
    cube_out,
    extent,
    matrix,
    matrix_out,
    vector,
    vector_out,
)
from nashlearn.kernels.junction_tables cimport (
    Desk,
    add_up_lifts,
    build_table,
    fill_table,
    finite,
    lay_desk,
    pool_columns,
    pool_rows,
    power,
    tell_child,
    tell_parent,
)
from nashlearn.kernels.junctions cimport Junctions
from nashlearn.kernels.replies cimport Replies
from nashlearn.kernels.scratch cimport Scratch
from nashlearn.kernels.simd cimport simd_max, simd_sum
from nashlearn.kernels.vectors cimport vec_exponentials, vec_scale


cdef void _settle(
    Replies loss, const Desk* d, const Py_ssize_t* nodes, Py_ssize_t count, const double* r, double* stack
) noexcept nogil:
    """Renew the replies of some nodes, whose joint states are worth ``r`` without them."""
    cdef Py_ssize_t a, s, k = d.k, v = nodes[0], half = count // 2, rows, columns
    if count == 1:
        loss.reply(d.row + v, r, k, d.eps, d.p + v * d.options, d.room)
        loss.gain(d.row + v, d.p + v * d.options, k, d.lift + v * k)
        return
    rows, columns = power(k, half), power(k, count - half)
    add_up_lifts(d, nodes + half, count - half)
    for a in range(rows):
        for s in range(columns):
            d.b[a * columns + s] = r[a * columns + s] + d.u[s]
    pool_rows(d, rows, columns, stack)
    _settle(loss, d, nodes, half, stack, stack + rows)
    add_up_lifts(d, nodes, half)
    for a in range(rows):
        for s in range(columns):
            d.b[a * columns + s] = r[a * columns + s] + d.u[a]
    pool_columns(d, rows, columns, stack)
    _settle(loss, d, nodes + half, count - half, stack, stack + columns)


cdef void _tour(Replies loss, Junctions t, const Desk* d, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
    """Renew all replies, depth first, with messages down and, on the way back, up."""
    cdef Py_ssize_t c, e, after
    cdef const double* r
    for c in range(first, last):
        if t.parent[c] >= 0:
            tell_child(t, d, c)
        r = d.E + t.table[c]
        if t.child[c] >= 0 or t.parent[c] >= 0:
            fill_table(t, d, c, -1, False, True)
            pool_rows(d, t.rows[c], t.columns[c], d.stack)
            r = d.stack
        _settle(loss, d, t.scope + t.starts[c], t.own[c], r, d.stack + t.rows[c])
        after = t.parent[c + 1] if c + 1 < last else -1
        e = c
        while e != after and t.parent[e] >= 0:
            tell_parent(t, d, e)
            e = t.parent[e]


cdef void _singles(const Desk* d, const double* Q, Py_ssize_t count, double* out, double* stack) noexcept nogil:
    """Write the marginals (count, k) of a table ``Q`` over the joint states of so many nodes."""
    cdef Py_ssize_t a, s, half = count // 2, rows, columns
    if count == 1:
        memcpy(out, Q, d.k * sizeof(double))
        return
    rows, columns = power(d.k, half), power(d.k, count - half)
    for a in range(rows):
        stack[a] = simd_sum(Q + a * columns, columns)
    _singles(d, stack, half, out, stack + rows)
    memcpy(stack, Q, columns * sizeof(double))
    for a in range(1, rows):
        for s in range(columns):
            stack[s] += Q[a * columns + s]
    _singles(d, stack, count - half, out + half * d.k, stack + columns)


cdef double _pairs(
    Junctions t, const Desk* d, Py_ssize_t c, double* Q, double weight, double* pairs
) noexcept nogil:
    """Write the marginals of the nodes that clique ``c`` owns and of its edges; returns ``<scores, q>``.

    ``Q`` (all states) is summed up, one node after another. Edges that share a table add to it, times ``weight``.
    """
    cdef Py_ssize_t k = d.k, width = t.starts[c + 1] - t.starts[c], size = t.rows[c] * t.columns[c], at, a, b, i, x
    cdef const Py_ssize_t* pair
    cdef const double* T
    cdef double* own
    cdef double mass, scored = 0.0
    cdef bint joined
    for at in range(width):
        size //= k
        joined = False
        for i in range(t.pair_starts[c], t.pair_starts[c + 1]):
            joined |= t.pairs[4 * i] == at
        for a in range(k):
            if at < t.own[c]:
                x = t.scope[t.starts[c] + at] * k + a
                mass = d.q[x] = simd_sum(Q + a * size, size)
                if mass > 0.0:
                    scored += mass * d.f[x]
            if not joined:
                continue
            _singles(d, Q + a * size, width - at - 1, d.singles, d.stack)
            for i in range(t.pair_starts[c], t.pair_starts[c + 1]):
                pair = t.pairs + 4 * i
                if pair[0] == at:
                    T, own = d.T + pair[2] * d.apart, pairs + pair[2] * d.apart
                    for b in range(k):
                        mass = d.singles[(pair[1] - at - 1) * k + b]
                        x = b * k + a if pair[3] else a * k + b
                        if mass > 0.0:
                            scored += mass * T[x]
                        if d.apart > 0:
                            own[x] = mass
                        else:
                            own[x] += weight * mass
        for a in range(1, k):
            for x in range(size):
                Q[x] += Q[a * size + x]
    return scored


cdef void _marginals(
    Replies loss, Junctions t, const Desk* d, Py_ssize_t first, Py_ssize_t last, double weight, double* pairs,
    double* sums
) noexcept nogil:
    """Marginals from the messages inwards; the value at ``p``, ``<p, L q>``, its least over p, and ``<scores, q>``."""
    cdef Py_ssize_t c, i, v, size
    cdef double top, mass
    memset(sums, 0, 4 * sizeof(double))
    for c in range(first, last):
        if t.parent[c] >= 0:
            tell_child(t, d, c)
        fill_table(t, d, c, -1, True, True)
        size = t.rows[c] * t.columns[c]
        top = simd_max(d.b, size, -INFINITY)
        vec_exponentials(d.b, finite(top), d.eps, size, d.z)
        mass = simd_sum(d.z, size)
        if t.parent[c] < 0:
            sums[0] += top + d.eps * log(mass)
        vec_scale(d.z, 1.0 / mass, size)
        sums[3] += _pairs(t, d, c, d.z, weight, pairs)
        for i in range(t.own[c]):
            v = t.scope[t.starts[c] + i]
            sums[1] += loss.expected(d.row + v, d.p + v * d.options, d.q + v * d.k, d.k)
            sums[2] += loss.risk(d.row + v, d.q + v * d.k, d.k)


cdef class _Cast:
    """A batch of networks as the entries below take it: arrays checked, with room for the largest network."""

    cdef Desk d
    cdef Scratch room
    cdef const Py_ssize_t* graph
    cdef const Py_ssize_t* row
    cdef const Py_ssize_t* edge
    cdef const double* f
    cdef const double* T
    cdef double* p
    cdef Py_ssize_t rows

    def __cinit__(self, Junctions t not None, networks, f, T, double eps, Py_ssize_t first, Py_ssize_t last):
        cdef Py_ssize_t x, g, n, m = extent(T, "T", 0), nodes = 0, entries = 0, messages = 0
        if not isinstance(networks, tuple) or len(networks) != 3:
            raise TypeError("networks must be three arrays: graphs, first rows and first edges")
        graph, row, edge = networks
        n = extent(graph, "networks.graph", 0)
        self.rows = extent(f, "f", 0)
        self.graph = <const Py_ssize_t*> vector(graph, "networks.graph", INDEX, n)
        self.row = <const Py_ssize_t*> vector(row, "networks.row", INDEX, n)
        self.edge = <const Py_ssize_t*> vector(edge, "networks.edge", INDEX, n)
        self.f = <const double*> matrix(f, "f", DOUBLE, self.rows, t.k)
        self.T = <const double*> cube(T, "T", DOUBLE, m, t.k, t.k)
        if not (0 <= first <= last <= n and eps >= 0.0):
            raise ValueError(f"need 0 <= first <= last <= {n} and eps >= 0; got {first=}, {last=}, {eps=}")
        for x in range(first, last):
            g = self.graph[x]
            if not 0 <= g < t.n_graphs:
                raise ValueError(f"networks.graph must lie in 0..{t.n_graphs - 1}; got {g}")
            if not 0 <= self.row[x] <= self.rows - t.nodes[g]:
                raise ValueError(f"networks.row must leave {t.nodes[g]} rows; got {self.row[x]} of {self.rows}")
            if not (0 <= self.edge[x] <= m - t.edges[g] or m == 1 or t.edges[g] == 0):
                raise ValueError(f"networks.edge must leave room for {t.edges[g]} edges; got {self.edge[x]} of {m}")
            nodes, entries = max(nodes, t.nodes[g]), max(entries, t.entries[g])
            messages = max(messages, t.messages[g])
        self.d.k, self.d.eps, self.d.apart = t.k, eps, 0 if m == 1 else t.k * t.k
        self.room = Scratch(lay_desk(t, &self.d, nodes, entries, messages, 0))
        lay_desk(t, &self.d, nodes, entries, messages, <size_t> self.room.at)

    cdef int replies(self, Replies loss, object p) except -1:
        self.d.options = extent(p, "p", 1)
        self.p = <double*> matrix_out(p, "p", DOUBLE, self.rows, self.d.options)
        loss.fits(self.rows, self.d.k, self.d.options)
        return 0

    cdef void seat(self, Junctions t, Py_ssize_t x) noexcept nogil:
        """Let the desk be that of network ``x``, its tables written."""
        cdef Py_ssize_t c, g = self.graph[x]
        self.d.row = self.row[x]
        self.d.f, self.d.T = self.f + self.row[x] * self.d.k, self.T + self.edge[x] * self.d.apart
        self.d.p = self.p + self.row[x] * self.d.options
        for c in range(t.graphs[g], t.graphs[g + 1]):
            build_table(t, &self.d, c)

    cdef void upwards(self, Junctions t, Py_ssize_t g) noexcept nogil:
        """Messages to parents at the lifts that are there."""
        cdef Py_ssize_t c
        for c in range(t.graphs[g + 1] - 1, t.graphs[g] - 1, -1):
            if t.parent[c] >= 0:
                tell_parent(t, &self.d, c)


def play(
    Replies loss not None, Junctions trees not None, networks, f, T, double eps, Py_ssize_t rounds, p, q, pairs,
    weight, Py_ssize_t first, Py_ssize_t last, sums
):
    """Renew the replies ``p`` of the networks ``first..last - 1`` in so many rounds; write ``q`` and ``pairs``.

    ``networks`` are the graph of each network, its first row in ``f``, ``p`` and ``q``, and its first edge in ``T``
    and ``pairs`` (m, k, k); where ``m`` is 1 all edges share the table, and their marginals are added to ``pairs``,
    times the network's ``weight``. ``sums`` (networks, 4) gets the smoothed value at ``p``, ``<p, L q>``, its least
    over ``p``, and ``<scores, q>``. Cost: see the module.
    """
    cdef _Cast cast = _Cast(trees, networks, f, T, eps, first, last)
    cdef Desk* d = &cast.d
    cdef Py_ssize_t x, v, g, trip, m = extent(T, "T", 0), n = extent(networks[0], "networks.graph", 0)
    cdef double* marginals = <double*> matrix_out(q, "q", DOUBLE, cast.rows, trees.k)
    cdef double* edges = <double*> cube_out(pairs, "pairs", DOUBLE, m, trees.k, trees.k)
    cdef double* found = <double*> matrix_out(sums, "sums", DOUBLE, n, 4)
    cdef const double* shares = <const double*> vector(weight, "weight", DOUBLE, n)
    cast.replies(loss, p)
    if not (rounds >= 0 and eps > 0.0):
        raise ValueError(f"need rounds >= 0 and eps > 0; got {rounds=}, {eps=}")
    with nogil:
        for x in range(first, last):
            g = cast.graph[x]
            cast.seat(trees, x)
            d.q = marginals + d.row * d.k
            for v in range(trees.nodes[g]):
                loss.gain(d.row + v, d.p + v * d.options, d.k, d.lift + v * d.k)
            cast.upwards(trees, g)
            for trip in range(rounds):
                _tour(loss, trees, d, trees.graphs[g], trees.graphs[g + 1])
            _marginals(
                loss, trees, d, trees.graphs[g], trees.graphs[g + 1], shares[x], edges + cast.edge[x] * d.apart,
                found + 4 * x
            )


def ceilings(
    Replies loss not None, Junctions trees not None, networks, f, T, p, Py_ssize_t first, Py_ssize_t last, values
):
    """Write what the best labelling of each network gets against the replies ``p``, without smoothing."""
    cdef _Cast cast = _Cast(trees, networks, f, T, 0.0, first, last)
    cdef Desk* d = &cast.d
    cdef Py_ssize_t x, v, g, c, n = extent(networks[0], "networks.graph", 0)
    cdef double* found = <double*> vector_out(values, "values", DOUBLE, n)
    cast.replies(loss, p)
    with nogil:
        for x in range(first, last):
            g = cast.graph[x]
            cast.seat(trees, x)
            for v in range(trees.nodes[g]):
                loss.gain(d.row + v, d.p + v * d.options, d.k, d.lift + v * d.k)
            cast.upwards(trees, g)
            found[x] = 0.0
            for c in range(trees.graphs[g], trees.graphs[g + 1]):
                if trees.parent[c] < 0:
                    fill_table(trees, d, c, -1, True, False)
                    found[x] += simd_max(d.b, trees.rows[c], -INFINITY)


def decode(Junctions trees not None, networks, f, T, Py_ssize_t first, Py_ssize_t last, labels):
    """Write the best labelling of each network into ``labels``, in the order of rows."""
    cdef _Cast cast = _Cast(trees, networks, f, T, 0.0, first, last)
    cdef Desk* d = &cast.d
    cdef Py_ssize_t x, g, c, u, s, a, best, i
    cdef Py_ssize_t* chosen = <Py_ssize_t*> vector_out(labels, "labels", INDEX, cast.rows)
    with nogil:
        for x in range(first, last):
            g = cast.graph[x]
            cast.seat(trees, x)
            memset(d.lift, 0, trees.nodes[g] * d.k * sizeof(double))
            cast.upwards(trees, g)
            for c in range(trees.graphs[g], trees.graphs[g + 1]):
                u, best = trees.parent[c], 0
                s = 0 if u < 0 else trees.maps[trees.places[c] + d.entry[u - trees.graphs[g]]]
                fill_table(trees, d, c, -1, False, False)
                for a in range(trees.rows[c]):
                    if d.b[a * trees.columns[c] + s] > d.b[best * trees.columns[c] + s]:
                        best = a
                d.entry[c - trees.graphs[g]] = best * trees.columns[c] + s
                for i in range(trees.own[c] - 1, -1, -1):
                    chosen[d.row + trees.scope[trees.starts[c] + i]] = best % d.k
                    best //= d.k
