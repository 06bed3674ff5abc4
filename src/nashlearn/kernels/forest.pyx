"""The sweep on forests in the probability domain: what training calls, once for each evaluation.

A batch of chains or trees is one forest, its nodes numbered in depth-first preorder. One round is

    up      messages to parents at the replies that are there;
    tour    depth first: renew a node's reply, tell its children what lies outside, on the way back renew messages;
    q       node and edge marginals; only where nodes branch do they need another pass down.

All numbers are probabilities scaled by their largest, so that a pass is multiplications and additions, with one
exponential for each node and label. Where the scores' range, in units of the smoothing, is too wide for that, the
component is left untouched and reported: :mod:`nashlearn.kernels.messages` takes any range.
A chain is a tree without branches; costs are O(k^2) an edge. Reference: the sweep is block coordinate descent on the
predictor's side of the smoothed game, each block exact.
"""

from libc.math cimport log
from libc.string cimport memset
from nashlearn.kernels.checks cimport (
    DOUBLE,
    INDEX,
    MARK,
    cube,
    cube_out,
    extent,
    matrix,
    matrix_out,
    vector,
    vector_out,
)
from nashlearn.kernels.lanes cimport (
    lanes_by_top,
    lanes_filled,
    lanes_outer,
    lanes_outers,
    lanes_product,
    lanes_scaled_product,
    lanes_sum,
    lanes_sum_product,
    lanes_top_product,
)
from nashlearn.kernels.replies cimport Replies
from nashlearn.kernels.scratch cimport Scratch, doubles
from nashlearn.kernels.simd cimport simd_dot, simd_max
from nashlearn.kernels.vectors cimport vec_exponentials, vec_flush, vec_rows_dot, vec_rows_sum


cdef Desk new_desk(Py_ssize_t longest, Py_ssize_t k, bint shared, size_t* at) noexcept nogil:
    cdef Desk d
    cdef Py_ssize_t width = lanes_filled(k), size = longest * width
    cdef size_t start = (at[0] + 31) // 32 * 32, here = start  # lanes that do not cross lines of the cache
    d.k, d.width, d.shared = k, width, shared
    d.base, d.node, d.below = doubles(&here, size), doubles(&here, size), doubles(&here, size)
    d.up, d.outside, d.pair = doubles(&here, size), doubles(&here, size), doubles(&here, size)
    d.x, d.c, d.own = doubles(&here, width), doubles(&here, width), doubles(&here, k * width)
    d.table, d.turned = doubles(&here, k * width if shared else 0), doubles(&here, k * width if shared else 0)
    d.scale, d.spread, d.mass = doubles(&here, longest), doubles(&here, longest), doubles(&here, longest)
    d.high, d.lifted, d.g = doubles(&here, longest), doubles(&here, longest), doubles(&here, 2 * k)
    at[0] += 32 + here - start
    return d


cdef void clear_desk(Desk* d, Py_ssize_t longest, const double* W) noexcept nogil:
    cdef Py_ssize_t a, b, k = d.k, n = d.width
    memset(d.base, 0, longest * n * sizeof(double))  # zeros at the ends of all other rows follow from these
    memset(d.node, 0, longest * n * sizeof(double))
    if d.shared:
        memset(d.table, 0, k * n * sizeof(double))
        memset(d.turned, 0, k * n * sizeof(double))
        for a in range(k):
            for b in range(k):
                d.table[a * n + b] = d.turned[b * n + a] = W[a * k + b]


cdef inline void _ones(double* x, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t a
    for a in range(n):
        x[a] = 1.0


cdef inline void _round(double* x, Py_ssize_t k) noexcept nogil:
    cdef Py_ssize_t a
    for a in range(k):
        x[a] = <float> x[a]


cdef inline void _multiply(
    const Forest* t, const Desk* d, Py_ssize_t root, Py_ssize_t i, Py_ssize_t skip, double* out
) noexcept nogil:
    """Product of the messages of the children of node ``i`` but that of ``skip``."""
    cdef Py_ssize_t c = t.child[i]
    _ones(out, d.width)
    while c >= 0:
        if c != skip:
            lanes_product(out, d.up + (c - root) * d.width, d.width, out)
        c = t.sibling[c]


cdef inline const double* _below(const Forest* t, const Desk* d, Py_ssize_t root, Py_ssize_t i) noexcept nogil:
    """Product of the messages of the children of node ``i``, as :func:`_gather` has left it; an only child's own."""
    cdef Py_ssize_t c = t.child[i]
    return d.up + (c - root) * d.width if c >= 0 and t.sibling[c] < 0 else d.below + (i - root) * d.width


cdef inline void _gather(const Forest* t, const Desk* d, Py_ssize_t root, Py_ssize_t i) noexcept nogil:
    """Multiply the messages of the children of node ``i``, unless there is one alone."""
    cdef Py_ssize_t c = t.child[i]
    if c < 0 or t.sibling[c] >= 0:
        _multiply(t, d, root, i, -1, d.below + (i - root) * d.width)


cdef inline void _pass(
    const Tables* tables, const Desk* d, Py_ssize_t table, bint downwards, const double* x, double* out
) noexcept nogil:
    """``x`` through a table to its second node, or, not ``downwards``, to its first."""
    cdef const double* W = tables.W + table * d.k * d.k
    if d.shared:
        lanes_sum(d.table if downwards else d.turned, x, d.k, d.width, out)
        return
    memset(out + d.k, 0, (d.width - d.k) * sizeof(double))
    if downwards:
        vec_rows_sum(W, x, d.k, out)
    else:
        vec_rows_dot(W, x, d.k, out)


cdef inline bint _tell_parent(
    const Forest* t, const Tables* tables, const Desk* d, Py_ssize_t root, Py_ssize_t i
) noexcept nogil:
    """The message of node ``i`` to its parent, scaled by its largest entry; whether that is in range."""
    cdef Py_ssize_t n = d.width, j = i - root
    lanes_product(d.node + j * n, _below(t, d, root, i), n, d.x)
    _pass(tables, d, t.table[i], t.flipped[i], d.x, d.up + j * n)
    d.scale[j] = lanes_by_top(d.up + j * n, n)
    return d.scale[j] > 0.0


cdef inline void _tell_child(
    const Forest* t, const Tables* tables, const Desk* d, Py_ssize_t root, Py_ssize_t i
) noexcept nogil:
    """What lies outside node ``i``; ``pair`` keeps the parent's side of the edge, ``spread`` the scale."""
    cdef Py_ssize_t n = d.width, j = i - root, u = t.parent[i]
    cdef double* pair = d.pair + j * n
    lanes_product(d.outside + (u - root) * n, d.node + (u - root) * n, n, pair)
    if not (t.child[u] == i and t.sibling[i] < 0):
        _multiply(t, d, root, u, i, d.x)
        lanes_product(pair, d.x, n, pair)
    _pass(tables, d, t.table[i], not t.flipped[i], pair, d.outside + j * n)
    d.spread[j] = lanes_by_top(d.outside + j * n, n)


cdef bint _up(
    Replies loss, const Forest* t, const Tables* tables, const Component* part, const Desk* d
) noexcept nogil:
    """Messages to parents at the replies that are there; whether all are in range."""
    cdef Py_ssize_t i, j, k = d.k, n = d.width, root = part.root
    cdef const double* f
    for i in range(root, part.end):  # a pass of its own: rows that are read one after another are foreseen by the cache
        j = i - root
        f = part.f + j * k
        d.high[j] = simd_max(f, k, f[0])
        vec_exponentials(f, d.high[j], tables.eps, k, d.base + j * n)
        d.lifted[j] = loss.tilt(
            i, part.p + j * part.options, d.base + j * n, k, tables.eps, d.g, d.node + j * n
        )
    for i in range(part.end - 1, root - 1, -1):
        _gather(t, d, root, i)
        if i > root and not _tell_parent(t, tables, d, root, i):
            return False
    return True


cdef inline bint _in_range(double best, double reach) noexcept nogil:
    """Whether what lies ``reach`` below the logarithm of ``best`` has one that is a normal number."""
    if best >= 1e-190 and reach <= 200.0:  # without a logarithm, for most nodes
        return True
    # -660 lies a little above the logarithm of the smallest normal number.
    return best > 0.0 and log(best) - reach > -660.0


cdef bint _tour(
    Replies loss, const Forest* t, const Tables* tables, const Component* part, const Desk* d
) noexcept nogil:
    """Renew the replies, depth first, with what is told to children on the way down and to parents on the way up."""
    cdef Py_ssize_t i, j, c, after, n = d.width, root = part.root
    cdef double best, eps = tables.eps
    for i in range(root, part.end):
        j = i - root
        if i > root:
            _tell_child(t, tables, d, root, i)
        else:
            _ones(d.outside, n)
        best = lanes_top_product(d.outside + j * n, _below(t, d, root, i), d.base + j * n, n, d.c)
        if not _in_range(best, loss.reach(i, eps) / eps):
            return False
        d.lifted[j] = loss.settle(
            i, d.c, best, d.base + j * n, d.k, eps, part.p + j * part.options, d.g, d.node + j * n
        )
        after = t.parent[i + 1] if i + 1 < part.end else -1
        c = i
        while c != after and c > root:
            if not _tell_parent(t, tables, d, root, c):
                return False
            c = t.parent[c]
            _gather(t, d, root, c)
    return True


cdef bint _marginals(
    const Forest* t, const Tables* tables, const Component* part, const Desk* d, bint again
) noexcept nogil:
    """Nodes' marginals; ``again`` tells children anew, which chains have been told already."""
    cdef Py_ssize_t i, j, a, k = d.k, n = d.width
    cdef double share
    cdef double* q
    for i in range(part.root, part.end):
        j = i - part.root
        q = part.q + j * k
        if j == 0:
            _ones(d.outside, n)
        elif again:
            _tell_child(t, tables, d, part.root, i)
        d.mass[j] = lanes_sum_product(d.outside + j * n, d.node + j * n, _below(t, d, part.root, i), n, d.x)
        # An edge's marginals are divided by both, so what underflowed must be small beside their product.
        if not (d.mass[j] > 1e-290 and (j == 0 or d.mass[j] * d.spread[j] > 1e-290)):
            return False
        share = 1.0 / d.mass[j]
        for a in range(k):
            q[a] = share * d.x[a]
        if part.single:
            _round(q, k)
    return True


cdef inline double _flush(const Tables* tables, const Desk* d, Py_ssize_t e, double weight, double* E) noexcept nogil:
    """Add what the edges of table ``e`` have gathered to ``E``, and begin anew; returns its part of ``<T, q>``."""
    cdef Py_ssize_t a, k = d.k, at = e * k * k
    cdef double scored = 0.0
    for a in range(k):
        scored += vec_flush(
            d.own + a * d.width, tables.W + at, tables.T + at if tables.T != NULL else NULL, k, weight, E + at
        )
        at += k
    return scored


cdef double _edges(
    const Forest* t, const Tables* tables, const Component* part, const Desk* d, double weight, double* E
) noexcept nogil:
    """Add the edges' marginals, weighted and divided by ``W``, to ``E``; returns ``<T, q>``. The messages are lost."""
    cdef Py_ssize_t k = d.k, n = d.width, i, j, e
    cdef const Py_ssize_t* table = t.table
    cdef const unsigned char* flipped = t.flipped
    cdef double scored = 0.0
    for i in range(part.root + 1, part.end):
        j = i - part.root
        lanes_scaled_product(
            d.node + j * n, _below(t, d, part.root, i), 1.0 / d.mass[j] / d.spread[j], n, d.up + j * n
        )
    i = part.root + 1
    while i < part.end:
        j, e = i - part.root, table[i]
        if (
            i + 3 < part.end
            and e == table[i + 1] and e == table[i + 2] and e == table[i + 3]
            and not (flipped[i] or flipped[i + 1] or flipped[i + 2] or flipped[i + 3])
        ):
            lanes_outers(d.own, d.pair + j * n, d.up + j * n, k, n)
            i += 4
        else:
            if flipped[i]:
                lanes_outer(d.own, d.up + j * n, d.pair + j * n, k, n)
            else:
                lanes_outer(d.own, d.pair + j * n, d.up + j * n, k, n)
            i += 1
        if i == part.end or table[i] != e:
            scored += _flush(tables, d, e, weight, E)
    return scored


cdef void _sums(
    Replies loss, const Forest* t, const Tables* tables, const Component* part, const Desk* d, double* sums
) noexcept nogil:
    """The value at ``p``, ``<p, L q>``, its least over ``p``, and the nodes' part of ``<scores, q>``."""
    cdef Py_ssize_t i, j, k = d.k
    cdef double value = 0.0, cost = 0.0, risk = 0.0, scored = 0.0, norm = d.mass[0], least
    cdef const double* q
    for i in range(part.root, part.end):
        j = i - part.root
        q = part.q + j * k
        cost += loss.stakes(i, part.p + j * part.options, q, k, &least)
        risk += least
        scored += simd_dot(part.f + j * k, q, k)
        value += d.high[j] + d.lifted[j]
        if j > 0:
            value += tables.tops[t.table[i]]
            if 1e-100 < norm < 1e100 and d.scale[j] > 1e-100:  # one logarithm for many factors
                norm *= d.scale[j]
            else:
                value += tables.eps * (log(norm) + log(d.scale[j]))
                norm = 1.0
    sums[0], sums[1], sums[2], sums[3] = value + tables.eps * log(norm), cost, risk, scored


cdef bint play_component(
    Replies loss, const Forest* t, const Tables* tables, const Component* part, Py_ssize_t rounds, double weight,
    Desk* desk, double* E, double* sums
) noexcept nogil:
    cdef Py_ssize_t trip
    if not _up(loss, t, tables, part, desk):
        return False
    for trip in range(rounds):
        if not _tour(loss, t, tables, part, desk):
            return False
    if not _marginals(t, tables, part, desk, part.branched or rounds == 0):
        return False
    memset(desk.own, 0, desk.k * desk.width * sizeof(double))
    _sums(loss, t, tables, part, desk, sums)
    sums[3] += _edges(t, tables, part, desk, weight, E)
    return True


cdef Py_ssize_t _end(const Forest* t, Py_ssize_t root, Py_ssize_t last, bint* branched) noexcept nogil:
    """The end of the component that begins at ``root``, before ``last``; whether a node in it has two children."""
    cdef Py_ssize_t end = root + 1
    branched[0] = False
    while end < last and t.parent[end] >= 0:
        branched[0] |= t.sibling[end] >= 0
        end += 1
    return end


cdef Py_ssize_t _longest(const Forest* t, Py_ssize_t first, Py_ssize_t last, Py_ssize_t m) except -1:
    """The most nodes of a component; refuses what is no forest in preorder, and tables that there are not."""
    cdef Py_ssize_t i, root = first, end, most = 1
    cdef bint sound = True, branched
    while root < last:
        end = _end(t, root, last, &branched)
        sound &= t.parent[root] < 0
        for i in range(root, end):
            sound &= i == root or (root <= t.parent[i] < i and 0 <= t.table[i] < m)
            sound &= t.child[i] == -1 or i < t.child[i] < end
            sound &= t.sibling[i] == -1 or i < t.sibling[i] < end
        most, root = max(most, end - root), end
    if not sound:
        raise ValueError(f"parent, child, sibling and table must be those of a forest in preorder with {m} tables")
    return most


cdef Forest _forest(object arrays, Py_ssize_t n) except *:
    """The arrays of a forest of ``n`` nodes; what is in them is for :func:`_longest` to look at."""
    cdef Forest t
    parent, child, sibling, table, flipped = arrays
    t.parent = <const Py_ssize_t*> vector(parent, "parent", INDEX, n)
    t.child = <const Py_ssize_t*> vector(child, "child", INDEX, n)
    t.sibling = <const Py_ssize_t*> vector(sibling, "sibling", INDEX, n)
    t.table = <const Py_ssize_t*> vector(table, "table", INDEX, n)
    t.flipped = <const unsigned char*> vector(flipped, "flipped", MARK, n)
    return t


def play(
    Replies loss not None, forest, f, T, tops, W, double eps, Py_ssize_t rounds, p, q, E, weight,
    Py_ssize_t first, Py_ssize_t last, lost, sums
):
    """Play the components of the nodes ``first..last - 1``; write ``p``, ``q``, and add edge marginals to ``E``.

    ``forest`` is a :class:`nashlearn.games.networks.forest.Forest` of n nodes. ``T`` (m, k, k) holds the tables,
    ``tops`` the largest entry of each, and ``W`` exp((T - tops) / eps). ``E`` sums the edges' marginals divided by
    ``W``, each component's times the ``weight`` of its root. Row ``root`` of ``sums`` (n, 4) gets the component's
    smoothed value at ``p``, ``<p, L q>``, its least over ``p``, and ``<scores, q>``. A component out of range sets
    ``lost`` at its root instead and adds nothing. ``f``, ``q`` and ``weight`` may have more than n rows.
    """
    cdef Py_ssize_t n = extent(lost, "lost", 0), rows = extent(f, "f", 0), k = extent(f, "f", 1)
    cdef Py_ssize_t m = extent(T, "T", 0), options = extent(p, "p", 1), longest
    cdef Forest t = _forest(forest, n)
    cdef Tables tables
    cdef Component part
    cdef Desk desk
    cdef size_t at = 0
    cdef const double* scores = <const double*> matrix(f, "f", DOUBLE, rows, k)
    cdef double* replies = <double*> matrix_out(p, "p", DOUBLE, n, options)
    cdef double* marginals = <double*> matrix_out(q, "q", DOUBLE, rows, k)
    cdef double* edges = <double*> cube_out(E, "E", DOUBLE, m, k, k)
    cdef const double* shares = <const double*> vector(weight, "weight", DOUBLE, rows)
    cdef unsigned char* beyond = <unsigned char*> vector_out(lost, "lost", MARK, n)
    cdef double* found = <double*> matrix_out(sums, "sums", DOUBLE, n, 4)
    tables.T = <const double*> cube(T, "T", DOUBLE, m, k, k)
    tables.tops = <const double*> vector(tops, "tops", DOUBLE, m)
    tables.W = <const double*> cube(W, "W", DOUBLE, m, k, k)
    tables.eps = eps
    if not (k > 0 and n <= rows and 0 <= first <= last <= n and rounds >= 0 and eps > 0.0):
        raise ValueError(
            f"need k > 0, n <= rows, 0 <= first <= last <= n, rounds >= 0 and eps > 0; got {k=}, {n=}, {rows=}, "
            f"{first=}, {last=}, {rounds=}, {eps=}"
        )
    loss.fits(n, k, options)
    longest = _longest(&t, first, last, m)
    new_desk(longest, k, m == 1, &at)
    cdef Scratch room = Scratch(at)
    at = <size_t> room.at
    desk = new_desk(longest, k, m == 1, &at)
    clear_desk(&desk, longest, tables.W)
    part.options, part.single, part.root = options, False, first
    with nogil:
        while part.root < last:
            part.end = _end(&t, part.root, last, &part.branched)
            part.f, part.q = scores + part.root * k, marginals + part.root * k
            part.p = replies + part.root * options
            if not play_component(
                loss, &t, &tables, &part, rounds, shares[part.root], &desk, edges, found + 4 * part.root
            ):
                beyond[part.root] = True
            part.root = part.end
