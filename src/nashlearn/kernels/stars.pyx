"""Dual block ascent on any graph: the local polytope's game, one node with all its edges at a time.

See :mod:`nashlearn.games.networks.stars` for the objective and the exact step of a node.
"""

from libc.math cimport INFINITY, exp, log
from libc.string cimport memset
from nashlearn.kernels.checks cimport DOUBLE, cube, cube_out, extent, matrix, matrix_out, vector
from nashlearn.kernels.graphs cimport Graph, graph_size, read_graph, read_tables
from nashlearn.kernels.replies cimport Replies
from nashlearn.kernels.scratch cimport Scratch, doubles
from nashlearn.kernels.simd cimport simd_dot, simd_max, simd_min
from nashlearn.kernels.vectors cimport (
    vec_add,
    vec_product,
    vec_rows_dot,
    vec_rows_dot_in_order,
    vec_rows_sum_in_order,
    vec_scale,
)

cdef extern from "Python.h":
    Py_ssize_t PY_SSIZE_T_MAX

cdef double _TINY = 1e-250  # sums below it are taken again in the log domain
cdef enum:
    _SHORT = 8  # rows of fewer entries gain nothing by vectors
cdef double _LEAST = 1e-300  # sum that others may be divided by


cdef struct Star:
    Graph g
    Py_ssize_t k
    const double* T
    const double* W  # exp((T - top) / eps)
    const double* top
    Py_ssize_t apart  # entries between two tables
    double eps
    double* x  # (k,) scratch, as the next three
    double* y
    double* z
    double* F
    double* mu  # (degree, k) scratch
    double* room  # (2, k), that of losses


cdef int _read(Star* s, object g, Py_ssize_t n, Py_ssize_t k, object heated) except -1:
    """Check a graph with its tables."""
    if not isinstance(heated, tuple) or len(heated) != 4:
        raise TypeError(f"heated must be three arrays and a temperature; got {type(heated).__name__}")
    T, W, top, eps = heated
    cdef Py_ssize_t number = extent(T, "heated.T", 0)
    if k < 1:
        raise ValueError("f and pairs must have at least one label")
    read_graph(g, n, &s.g)
    s.k, s.eps = k, eps
    s.T = read_tables(T, "heated.T", &s.g, k, &s.apart)
    s.W = <const double*> cube(W, "heated.W", DOUBLE, number, k, k)
    s.top = <const double*> vector(top, "heated.top", DOUBLE, number)
    return 0


cdef size_t _lay(Star* s, Py_ssize_t degree, size_t at) noexcept nogil:
    cdef size_t begin = at
    s.x, s.y, s.z, s.F = doubles(&at, s.k), doubles(&at, s.k), doubles(&at, s.k), doubles(&at, s.k)
    s.mu, s.room = doubles(&at, degree * s.k), doubles(&at, 2 * s.k)
    return at - begin


cdef double _log_sum(const double* values, Py_ssize_t k, double eps) noexcept nogil:
    cdef double top = simd_max(values, k, -INFINITY), total = 0.0
    cdef Py_ssize_t a
    if eps == 0.0 or top == -INFINITY:
        return top
    for a in range(k):
        if values[a] > top - 40.0 * eps:
            total += exp((values[a] - top) / eps)
    return top + eps * log(total)


cdef double _lowered(const double* alpha, Py_ssize_t k, double eps, double* out) noexcept nogil:
    """Write ``exp((low - alpha) / eps)`` and return ``low``, the least of them."""
    cdef double low = simd_min(alpha, k, INFINITY)
    cdef Py_ssize_t a
    for a in range(k):
        out[a] = exp((low - alpha[a]) / eps) if alpha[a] < INFINITY else 0.0
    return low


cdef void _told(const Star* s, Py_ssize_t e, Py_ssize_t side, const double* alpha, double* out) noexcept nogil:
    """``mu_e`` for the end ``side`` of edge ``e``."""
    cdef Py_ssize_t a, b, k = s.k, i = s.g.table[e] if s.apart else 0
    cdef const double* T = s.T + i * s.apart
    cdef const double* W = s.W + i * s.apart
    cdef const double* other = alpha + (2 * e + 1 - side) * k
    cdef double* x = s.x
    cdef double low = _lowered(other, k, s.eps, x), t
    if side == 0:
        vec_rows_dot_in_order(W, x, k, out)
    else:
        vec_rows_sum_in_order(W, x, k, out)
    for a in range(k):
        if out[a] > _TINY:
            out[a] = s.top[i] - low + s.eps * log(out[a])
        else:
            for b in range(k):
                t = T[a * k + b] if side == 0 else T[b * k + a]
                x[b] = t - other[b] if t > -INFINITY else -INFINITY
            out[a] = _log_sum(x, k, s.eps)


cdef void _visit(
    Replies loss, const Star* s, Py_ssize_t v, const double* f, double e_v, double* p, double* alpha, double* q
) noexcept nogil:
    """The exact step of node ``v``: its reply ``p``, its belief ``q`` and the multipliers of its edges."""
    cdef Py_ssize_t a, i, e, side, k = s.k, first = s.g.start[v], degree = s.g.start[v + 1] - first
    cdef double heat = e_v + degree * s.eps, top = -INFINITY, total = 0.0
    cdef double* F = s.F
    cdef double* own
    cdef double* mu
    for a in range(k):
        F[a] = f[a]
    for i in range(degree):
        mu = s.mu + i * k
        _told(s, s.g.member[first + i], s.g.side[first + i], alpha, mu)
        for a in range(k):
            F[a] += mu[a]
    loss.reply(v, F, k, heat, p, s.room)
    loss.gain(v, p, k, s.x)
    for a in range(k):
        F[a] += s.x[a]
    top = simd_max(F, k, -INFINITY)
    for a in range(k):
        q[a] = exp((F[a] - top) / heat)
        total += q[a]
    for a in range(k):
        q[a] /= total
    for i in range(degree):
        e, side, mu = s.g.member[first + i], s.g.side[first + i], s.mu + i * k
        own = alpha + (2 * e + side) * k
        for a in range(k):
            # The multiplier of a label that is out of the question keeps the edge from counting on it.
            own[a] = mu[a] - s.eps * (F[a] - top) / heat if F[a] > -INFINITY else INFINITY


def sweep(Replies loss not None, g, f, heated, double e_v, p, alpha, q):
    """Renew every node's reply and multipliers once, first to last, then back; ``q`` gets the nodes' beliefs.

    ``f`` (n, k) scores nodes; ``heated`` are the tables (m, k, k) of edges, or one for all of them, their
    exponentials, the tops that were taken off, and the temperature. ``p`` (n, options), ``alpha`` (m, 2, k).
    """
    cdef Star s
    cdef Py_ssize_t step, v, n = extent(f, "f", 0), k = extent(f, "f", 1), width = extent(p, "p", 1), degree = 0
    _read(&s, g, n, k, heated)
    loss.fits(n, k, width)
    cdef const double* scores = <const double*> matrix(f, "f", DOUBLE, n, k)
    cdef double* replies = <double*> matrix_out(p, "p", DOUBLE, n, width)
    cdef double* multipliers = <double*> cube_out(alpha, "alpha", DOUBLE, s.g.m, 2, k)
    cdef double* found = <double*> matrix_out(q, "q", DOUBLE, n, k)
    for v in range(n):
        degree = max(degree, s.g.start[v + 1] - s.g.start[v])
    cdef Scratch memory = Scratch(_lay(&s, degree, 0))
    _lay(&s, degree, <size_t> memory.at)
    with nogil:
        for step in range(2 * n):
            v = step if step < n else 2 * n - 1 - step
            _visit(loss, &s, v, scores + v * k, e_v, replies + v * width, multipliers, found + v * k)


cdef double _belief(const Star* s, Py_ssize_t e, const double* alpha, double* joint) noexcept nogil:
    """``eps log sum exp((T - alpha) / eps)`` of an edge; where ``joint`` is given, its distribution goes there."""
    cdef Py_ssize_t a, b, k = s.k, i = s.g.table[e] if s.apart else 0
    cdef const double* T = s.T + i * s.apart
    cdef const double* W = s.W + i * s.apart
    cdef const double* left = alpha + 2 * e * k
    cdef const double* right = left + k
    cdef double low, total, value, r
    if s.eps > 0.0:
        low = _lowered(left, k, s.eps, s.x) + _lowered(right, k, s.eps, s.y)
        vec_rows_dot(W, s.y, k, s.z)
        total = simd_dot(s.x, s.z, k)
        if total > _TINY:
            if joint != NULL:
                for a in range(k):
                    r = s.x[a] / total
                    for b in range(k):
                        joint[a * k + b] = W[a * k + b] * s.y[b] * r
            return s.top[i] - low + s.eps * log(total)
    for a in range(k):
        _exponents(T + a * k, left[a], right, k, s.y)
        s.x[a] = _log_sum(s.y, k, s.eps)
    value = _log_sum(s.x, k, s.eps)
    if joint != NULL:
        for a in range(k):
            _exponents(T + a * k, left[a], right, k, s.y)
            for b in range(k):
                joint[a * k + b] = exp((s.y[b] - value) / s.eps)
    return value


cdef void _exponents(const double* T, double left, const double* right, Py_ssize_t k, double* out) noexcept nogil:
    """A row of ``T - alpha``."""
    cdef Py_ssize_t b
    for b in range(k):
        out[b] = T[b] - left - right[b] if T[b] > -INFINITY else -INFINITY


def bound(Replies loss not None, g, f, heated, double e_v, p, alpha):
    """The objective at ``p`` and ``alpha``: an upper bound on the game's value at these temperatures."""
    cdef Star s
    cdef Py_ssize_t v, a, i, e, n = extent(f, "f", 0), k = extent(f, "f", 1), width = extent(p, "p", 1)
    _read(&s, g, n, k, heated)
    loss.fits(n, k, width)
    cdef const double* scores = <const double*> matrix(f, "f", DOUBLE, n, k)
    cdef const double* replies = <const double*> matrix(p, "p", DOUBLE, n, width)
    cdef const double* multipliers = <const double*> cube(alpha, "alpha", DOUBLE, s.g.m, 2, k)
    cdef const double* own
    cdef double* x
    cdef double value = 0.0
    cdef Scratch memory = Scratch(_lay(&s, 0, 0))
    _lay(&s, 0, <size_t> memory.at)
    x = s.x
    with nogil:
        for v in range(n):
            loss.gain(v, replies + v * width, k, x)
            for a in range(k):
                x[a] += scores[v * k + a]
            for i in range(s.g.start[v], s.g.start[v + 1]):
                own = multipliers + (2 * s.g.member[i] + s.g.side[i]) * k
                for a in range(k):
                    x[a] = x[a] + own[a] if x[a] > -INFINITY else x[a]
            for a in range(k):
                if x[a] == INFINITY:  # allowed here, but not by a neighbour
                    x[a] = -INFINITY
            value += _log_sum(x, k, e_v)
        for e in range(s.g.m):
            value += _belief(&s, e, multipliers, NULL)
    return value


def beliefs(g, heated, alpha, pairs):
    """The edges' own distributions, for which the bound is attained; their sums need not agree with the nodes'."""
    cdef Star s
    cdef Py_ssize_t e, k = extent(pairs, "pairs", 1)
    _read(&s, g, graph_size(g), k, heated)
    cdef const double* multipliers = <const double*> cube(alpha, "alpha", DOUBLE, s.g.m, 2, k)
    cdef double* found = <double*> cube_out(pairs, "pairs", DOUBLE, s.g.m, k, k)
    cdef Scratch memory = Scratch(_lay(&s, 0, 0))
    _lay(&s, 0, <size_t> memory.at)
    with nogil:
        for e in range(s.g.m):
            _belief(&s, e, multipliers, found + e * k * k)


def expected(Replies loss not None, p, q):
    """``<p, L q>``, summed over nodes."""
    cdef Py_ssize_t v, n = extent(q, "q", 0), k = extent(q, "q", 1), width = extent(p, "p", 1)
    if k < 1:
        raise ValueError("q must have at least one label")
    loss.fits(n, k, width)
    cdef const double* replies = <const double*> matrix(p, "p", DOUBLE, n, width)
    cdef const double* marginals = <const double*> matrix(q, "q", DOUBLE, n, k)
    cdef double cost = 0.0
    with nogil:
        for v in range(n):
            cost += loss.expected(v, replies + v * width, marginals + v * k, k)
    return cost


def risk(Replies loss not None, q):
    """``min_p <p, L q>``, summed over nodes."""
    cdef Py_ssize_t v, n = extent(q, "q", 0), k = extent(q, "q", 1)
    if k < 1:
        raise ValueError("q must have at least one label")
    loss.fits(n, k, PY_SSIZE_T_MAX)
    cdef const double* marginals = <const double*> matrix(q, "q", DOUBLE, n, k)
    cdef double least = 0.0
    with nogil:
        for v in range(n):
            least += loss.risk(v, marginals + v * k, k)
    return least


cdef void _add_rows(const double* joint, Py_ssize_t k, double* sums) noexcept nogil:
    """Sums of rows, each in the order of its entries, four rows at a time: one addition need not wait for the last."""
    cdef Py_ssize_t a, b, fours = k - k % 4 if k >= _SHORT else 0
    cdef double s0, s1, s2, s3
    for a in range(0, fours, 4):
        s0 = s1 = s2 = s3 = 0.0
        for b in range(a * k, a * k + k):
            s0 += joint[b]
            s1 += joint[b + k]
            s2 += joint[b + 2 * k]
            s3 += joint[b + 3 * k]
        sums[a], sums[a + 1], sums[a + 2], sums[a + 3] = s0, s1, s2, s3
    for a in range(fours, k):
        s0 = 0.0
        for b in range(a * k, a * k + k):
            s0 += joint[b]
        sums[a] = s0


cdef void _add_columns(const double* joint, Py_ssize_t k, double* sums) noexcept nogil:
    cdef Py_ssize_t a, b
    cdef double s
    if k >= _SHORT:
        memset(sums, 0, k * sizeof(double))
        for a in range(k):
            vec_add(joint + a * k, 1.0, k, sums)
        return
    for b in range(k):
        s = 0.0
        for a in range(k):
            s += joint[a * k + b]
        sums[b] = s


cdef void _scale_rows(double* joint, const double* sums, Py_ssize_t k, bint down, double* now) noexcept nogil:
    """Scale rows to these sums; ``down``: only those that exceed them. What is all but 0 stays as it is."""
    cdef Py_ssize_t a
    _add_rows(joint, k, now)
    for a in range(k):
        if now[a] > (sums[a] if down else _LEAST):
            vec_scale(joint + a * k, sums[a] / now[a], k)


cdef void _scale_columns(double* joint, const double* sums, Py_ssize_t k, double* now) noexcept nogil:
    """Scale columns to these sums."""
    cdef Py_ssize_t a, b
    _add_columns(joint, k, now)
    for b in range(k):
        now[b] = sums[b] / now[b] if now[b] > _LEAST else 1.0
    for a in range(k):
        vec_product(joint + a * k, now, k, joint + a * k)


cdef void _match(
    double* joint, const double* left, const double* right, Py_ssize_t k, double* row, double* column
) noexcept nogil:
    """Change ``joint`` into one with marginals ``left`` and ``right``, keeping its zeros where that is possible."""
    cdef Py_ssize_t a, b, turn
    cdef double missing = 0.0
    for turn in range(4):
        _scale_rows(joint, left, k, False, row)
        _scale_columns(joint, right, k, column)
    _scale_rows(joint, left, k, True, row)
    _add_rows(joint, k, row)
    for a in range(k):
        row[a] = max(left[a] - row[a], 0.0)
        missing += row[a]
    if missing > 0.0:
        _add_columns(joint, k, column)
        for b in range(k):
            column[b] = max(right[b] - column[b], 0.0)
        for a in range(k):
            if row[a] > 0.0:
                for b in range(k):
                    joint[a * k + b] += row[a] * column[b] / missing


def agree(g, q, pairs):
    """Change edge beliefs into marginals that agree with the nodes' ``q``: scaled, then topped up [altschuler2017]_."""
    cdef Graph graph
    cdef Py_ssize_t e, n = extent(q, "q", 0), k = extent(q, "q", 1)
    read_graph(g, n, &graph)
    cdef const double* marginals = <const double*> matrix(q, "q", DOUBLE, n, k)
    cdef double* joint = <double*> cube_out(pairs, "pairs", DOUBLE, graph.m, k, k)
    cdef Scratch memory = Scratch(2 * k * sizeof(double))
    cdef double* row = <double*> memory.at
    with nogil:
        for e in range(graph.m):
            _match(
                joint + e * k * k, marginals + graph.ends[2 * e] * k, marginals + graph.ends[2 * e + 1] * k, k, row,
                row + k
            )
