"""Sum-product, max-product and the predictor's sweep on clique trees, in the log domain: any range of scores.

    inward     each clique tells its parent  m(s) = eps log sum_a exp(b(a, s) / eps), leaves first;
    sweep      a depth-first tour: at each clique the node's reply is renewed, on the way back the message;
    outward    each clique is told by its parent what lies outside: marginals.

``b`` adds the node's scores, the lift ``L' p`` of its reply, the table and the children's messages. ``eps = 0`` is
max-product. Cost of each: a few operations for each entry of the tables, and one exponential where ``eps > 0``.
"""

from libc.math cimport INFINITY, exp, log
from libc.string cimport memset
from nashlearn.kernels.checks cimport (
    DOUBLE,
    INDEX,
    NARROW,
    extent,
    matrix,
    matrix_out,
    vector,
    vector_out,
    within,
)
from nashlearn.kernels.replies cimport Replies
from nashlearn.kernels.scratch cimport Scratch, doubles
from nashlearn.kernels.simd cimport simd_max

cdef enum:
    _NEGLIGIBLE = 40  # in units of eps, below the largest: exp(-40) is less than rounding


cdef struct Tree:  # see nashlearn.games.networks.cliques.CliqueArrays
    Py_ssize_t size
    const Py_ssize_t* node
    const Py_ssize_t* rows
    const Py_ssize_t* columns
    const Py_ssize_t* parent
    const Py_ssize_t* child
    const Py_ssize_t* sibling
    const Py_ssize_t* table
    const Py_ssize_t* map
    const int* maps
    Py_ssize_t n  # nodes
    Py_ssize_t k  # entries of a node's scores
    Py_ssize_t width  # of a clique's messages
    Py_ssize_t tallest  # rows of a table
    Py_ssize_t largest  # entries of a table
    const double* f  # (n, k)
    double* lift  # (n, k)
    const double* E
    double eps
    double* inside  # (size, width)
    double* outside  # (size, width)
    double* b  # (largest,) scratch
    double* total  # (width,) scratch
    double* reward  # (tallest,) scratch
    double* room  # (2, tallest), that of losses


cdef object _flaw(const Tree* t, Py_ssize_t entries, Py_ssize_t listed):
    """What is wrong with a tree whose tables lie among so many entries, and its maps among so many; None: nothing."""
    cdef Py_ssize_t c, d, u, x, before
    cdef unsigned int most
    for c in range(t.size):
        if not (0 < t.rows[c] <= t.k and 0 < t.columns[c] <= t.width):
            return f"the table of clique {c} must have 1..{t.k} rows and 1..{t.width} columns"
        if not 0 <= t.table[c] <= entries - t.rows[c] * t.columns[c]:
            return f"the table of clique {c} must lie among the {entries} entries given"
        if not -1 <= t.parent[c] < c:
            return f"the parent of clique {c} must come before it, or be -1"
        d, before = t.child[c], c
        while d != -1:
            if not (before < d < t.size and t.parent[d] == c):
                return f"the children of clique {c} must be listed in order"
            before, d = d, t.sibling[d]
    for c in range(t.size):
        u = t.parent[c]
        if u >= 0:
            if not 0 <= t.map[c] <= listed - t.rows[u] * t.columns[u]:
                return f"the map of clique {c} must lie among the {listed} entries of maps"
            if (
                c > 0 and t.map[c] == t.map[c - 1] and t.columns[c] >= t.columns[c - 1] and t.parent[c - 1] >= 0
                and t.rows[u] * t.columns[u] <= t.rows[t.parent[c - 1]] * t.columns[t.parent[c - 1]]
            ):
                continue  # seen a moment ago
            most = 0
            for x in range(t.map[c], t.map[c] + t.rows[u] * t.columns[u]):
                most = max(most, <unsigned int> t.maps[x])  # what is negative becomes large
            if most >= <size_t> t.columns[c]:
                return f"the map of clique {c} must hold columns 0..{t.columns[c] - 1}"
    return None


cdef int _read(Tree* t, object arrays, object f, object E, object inside) except -1:
    """Check a tree with its scores and the messages inwards."""
    if not isinstance(arrays, tuple) or len(arrays) != 9:
        raise TypeError(f"arrays must be the nine of a clique tree; got {type(arrays).__name__}")
    node, rows, columns, parent, child, sibling, table, places, maps = arrays
    cdef Py_ssize_t c, size = extent(node, "arrays.node", 0), listed = extent(maps, "arrays.maps", 0)
    cdef Py_ssize_t entries = extent(E, "E", 0)
    t.size, t.n, t.k, t.width = size, extent(f, "f", 0), extent(f, "f", 1), extent(inside, "inside", 1)
    t.node = <const Py_ssize_t*> vector(node, "arrays.node", INDEX, size)
    t.rows = <const Py_ssize_t*> vector(rows, "arrays.rows", INDEX, size)
    t.columns = <const Py_ssize_t*> vector(columns, "arrays.columns", INDEX, size)
    t.parent = <const Py_ssize_t*> vector(parent, "arrays.parent", INDEX, size)
    t.child = <const Py_ssize_t*> vector(child, "arrays.child", INDEX, size)
    t.sibling = <const Py_ssize_t*> vector(sibling, "arrays.sibling", INDEX, size)
    t.table = <const Py_ssize_t*> vector(table, "arrays.table", INDEX, size)
    t.map = <const Py_ssize_t*> vector(places, "arrays.map", INDEX, size)
    t.maps = <const int*> vector(maps, "arrays.maps", NARROW, listed)
    t.f = <const double*> matrix(f, "f", DOUBLE, t.n, t.k)
    t.E = <const double*> vector(E, "E", DOUBLE, entries)
    t.inside = <double*> matrix_out(inside, "inside", DOUBLE, size, t.width)
    within(t.node, size, t.n, "arrays.node")
    flaw = _flaw(t, entries, listed)
    if flaw is not None:
        raise ValueError(f"arrays must be a clique tree: {flaw}")
    t.tallest = t.largest = 1
    for c in range(size):
        t.tallest = max(t.tallest, t.rows[c])
        t.largest = max(t.largest, t.rows[c] * t.columns[c])
    return 0


cdef int _read_lift(Tree* t, object lift) except -1:
    """What replies add to the scores of nodes."""
    t.lift = <double*> matrix_out(lift, "lift", DOUBLE, t.n, t.k)
    return 0


cdef int _read_outside(Tree* t, object outside) except -1:
    """The messages outwards."""
    t.outside = <double*> matrix_out(outside, "outside", DOUBLE, t.size, t.width)
    return 0


cdef size_t _lay(Tree* t, size_t at) noexcept nogil:
    cdef size_t begin = at
    t.b, t.total = doubles(&at, t.largest), doubles(&at, t.width)
    t.reward, t.room = doubles(&at, t.tallest), doubles(&at, 2 * t.tallest)
    return at - begin


cdef void _fill(const Tree* t, Py_ssize_t c, Py_ssize_t skip, double* b) noexcept nogil:
    """Write ``b`` of clique ``c`` without the message of child ``skip`` and without what is outside."""
    cdef Py_ssize_t a, s, x, rows = t.rows[c], columns = t.columns[c], row = t.node[c] * t.k, d = t.child[c]
    cdef const double* E = t.E + t.table[c]
    cdef const double* told
    cdef const int* column
    cdef double base
    for a in range(rows):
        base = t.f[row + a] + t.lift[row + a]
        for s in range(columns):
            b[a * columns + s] = base + E[a * columns + s]
    while d >= 0:
        if d != skip:
            column, told = t.maps + t.map[d], t.inside + d * t.width
            for x in range(rows * columns):
                b[x] += told[column[x]]
        d = t.sibling[d]


cdef void _fill_all(const Tree* t, Py_ssize_t c, Py_ssize_t skip, double* b) noexcept nogil:
    """The same with what is outside."""
    cdef Py_ssize_t a, s, columns = t.columns[c]
    cdef const double* told = t.outside + c * t.width
    _fill(t, c, skip, b)
    if t.parent[c] >= 0:
        for a in range(t.rows[c]):
            for s in range(columns):
                b[a * columns + s] += told[s]


cdef void _pool_rows(const Tree* t, Py_ssize_t rows, Py_ssize_t columns, double* out) noexcept nogil:
    """``out[a] = eps log sum_s exp(b(a, s) / eps)``."""
    cdef Py_ssize_t a, s
    cdef const double* b = t.b
    cdef double top, total
    for a in range(rows):
        top, total = simd_max(b, columns, -INFINITY), 0.0
        if t.eps > 0.0 and top > -INFINITY:
            for s in range(columns):
                if b[s] > top - _NEGLIGIBLE * t.eps:
                    total += exp((b[s] - top) / t.eps)
            top += t.eps * log(total)
        out[a] = top
        b += columns


cdef void _finish(const Tree* t, Py_ssize_t columns, double* out) noexcept nogil:
    """Add the logarithms of the totals to the largest entries."""
    cdef Py_ssize_t s
    for s in range(columns):
        if out[s] > -INFINITY:
            out[s] += t.eps * log(t.total[s])


cdef void _tell_parent(const Tree* t, Py_ssize_t c) noexcept nogil:
    """Write the message of clique ``c``: its sums over rows."""
    cdef Py_ssize_t a, s, rows = t.rows[c], columns = t.columns[c]
    cdef double* out = t.inside + c * t.width
    cdef double* total = t.total
    cdef double* b = t.b
    cdef double x
    _fill(t, c, -1, b)
    for s in range(columns):
        out[s], total[s] = -INFINITY, 0.0
    for a in range(rows):
        for s in range(columns):
            x = b[a * columns + s]
            out[s] = x if x > out[s] else out[s]
    if t.eps > 0.0:
        for a in range(rows):
            for s in range(columns):
                x = b[a * columns + s]
                if x > out[s] - _NEGLIGIBLE * t.eps:
                    total[s] += exp((x - out[s]) / t.eps)
        _finish(t, columns, out)


cdef void _tell_child(const Tree* t, Py_ssize_t c) noexcept nogil:
    """What lies outside clique ``c``, from its parent: sums over the entries of the same column."""
    cdef Py_ssize_t x, s, u = t.parent[c], size = t.rows[u] * t.columns[u]
    cdef double* out = t.outside + c * t.width
    cdef const int* column = t.maps + t.map[c]
    _fill_all(t, u, c, t.b)
    for s in range(t.columns[c]):
        out[s], t.total[s] = -INFINITY, 0.0
    for x in range(size):
        s = column[x]
        if t.b[x] > out[s]:
            out[s] = t.b[x]
    if t.eps > 0.0:
        for x in range(size):
            s = column[x]
            if t.b[x] > out[s] - _NEGLIGIBLE * t.eps:
                t.total[s] += exp((t.b[x] - out[s]) / t.eps)
        _finish(t, t.columns[c], out)


def inward(arrays, f, lift, E, double eps, inside):
    """Write all messages to parents into ``inside`` and return ``eps log Z``, the sum of the roots'.

    ``arrays`` are those of a clique tree, ``f`` and ``lift`` (n, k) the nodes' scores and what replies add to them, and
    ``E`` the tables, flat.
    """
    cdef Tree t
    _read(&t, arrays, f, E, inside)
    _read_lift(&t, lift)
    cdef Scratch memory = Scratch(_lay(&t, 0))
    cdef Py_ssize_t c
    cdef double value = 0.0
    _lay(&t, <size_t> memory.at)
    t.eps = eps
    with nogil:
        for c in range(t.size - 1, -1, -1):
            _tell_parent(&t, c)
            if t.parent[c] < 0:
                value += t.inside[c * t.width]
    return value


def decode(arrays, f, E, inside, labels):
    """Write the labelling that attains ``eps log Z`` at ``eps = 0``, from the messages of :func:`inward`."""
    cdef Tree t
    _read(&t, arrays, f, E, inside)
    cdef Py_ssize_t* chosen = <Py_ssize_t*> vector_out(labels, "labels", INDEX, -1)
    cdef Scratch memory = Scratch(t.size * sizeof(Py_ssize_t))
    cdef Py_ssize_t* entry = <Py_ssize_t*> memory.at
    cdef Py_ssize_t a, c, d, s, u, v, best_label
    cdef double value, best
    within(t.node, t.size, extent(labels, "labels", 0), "arrays.node")
    with nogil:
        for c in range(t.size):
            v, u = t.node[c], t.parent[c]
            s = 0 if u < 0 else t.maps[t.map[c] + entry[u]]
            best, best_label = -INFINITY, 0
            for a in range(t.rows[c]):
                value = t.f[v * t.k + a] + t.E[t.table[c] + a * t.columns[c] + s]
                d = t.child[c]
                while d >= 0:
                    value += t.inside[d * t.width + t.maps[t.map[d] + a * t.columns[c] + s]]
                    d = t.sibling[d]
                if value > best:
                    best, best_label = value, a
            chosen[v] = best_label
            entry[c] = best_label * t.columns[c] + s


cdef void _visit(Replies loss, const Tree* t, Py_ssize_t c, double* p) noexcept nogil:
    """Renew the reply ``p`` of the node of clique ``c``, and its lift, from what lies around it."""
    cdef Py_ssize_t rows = t.rows[c], v = t.node[c]
    if t.parent[c] >= 0:
        _tell_child(t, c)
    memset(t.lift + v * t.k, 0, rows * sizeof(double))
    _fill_all(t, c, -1, t.b)
    _pool_rows(t, rows, t.columns[c], t.reward)
    loss.reply(v, t.reward, rows, t.eps, p, t.room)
    loss.gain(v, p, rows, t.lift + v * t.k)


def sweep(Replies loss not None, arrays, f, lift, E, double eps, p, inside, outside):
    """Renew every reply in ``p`` once, with its ``lift``; ``inside`` holds the messages before, and after."""
    cdef Tree t
    _read(&t, arrays, f, E, inside)
    _read_lift(&t, lift)
    _read_outside(&t, outside)
    cdef Py_ssize_t c, d, after, options = extent(p, "p", 1)
    cdef double* replies = <double*> matrix_out(p, "p", DOUBLE, t.n, options)
    cdef Scratch memory = Scratch(_lay(&t, 0))
    loss.fits(t.n, t.tallest, options)
    _lay(&t, <size_t> memory.at)
    t.eps = eps
    with nogil:
        for c in range(t.size):
            _visit(loss, &t, c, replies + t.node[c] * options)
            after = t.parent[c + 1] if c + 1 < t.size else -1
            d = c
            while d != after:
                _tell_parent(&t, d)
                d = t.parent[d]
                if d < 0:
                    break


def beliefs(arrays, place, f, lift, E, double eps, inside, outside, B):
    """Write the tables' unnormalised log-marginals into ``B``, each at its ``place``, from the messages inward."""
    cdef Tree t
    _read(&t, arrays, f, E, inside)
    _read_lift(&t, lift)
    _read_outside(&t, outside)
    cdef Py_ssize_t c, room = extent(B, "B", 0)
    cdef const Py_ssize_t* places = <const Py_ssize_t*> vector(place, "place", INDEX, t.size)
    cdef double* found = <double*> vector_out(B, "B", DOUBLE, room)
    cdef Scratch memory = Scratch(_lay(&t, 0))
    _lay(&t, <size_t> memory.at)
    t.eps = eps
    for c in range(t.size):
        if not 0 <= places[c] <= room - t.rows[c] * t.columns[c]:
            raise ValueError(f"place must leave room in B for the table of clique {c}")
    with nogil:
        for c in range(t.size):
            if t.parent[c] >= 0:
                _tell_child(&t, c)
            _fill_all(&t, c, -1, found + places[c])
