"""Padded batches of chains, each swept until its own gap is small enough: the losses of PyTorch in main memory.

A chain is a component of :mod:`nashlearn.kernels.forest`. Scores may be in single precision: a chain is then swept in
double precision all the same, but its gap is that of the marginals as they are stored.
"""

from libc.math cimport INFINITY, ceil, log, pow
from libc.string cimport memset
from nashlearn.kernels.checks cimport (
    DOUBLE,
    INDEX,
    MARK,
    SINGLE,
    Kind,
    cube,
    cube_out,
    extent,
    is_single,
    matrix,
    vector,
    vector_out,
)
from nashlearn.kernels.forest cimport Component, Desk, Forest, Tables, clear_desk, new_desk, play_component
from nashlearn.kernels.replies cimport Replies
from nashlearn.kernels.scratch cimport Scratch, doubles, indices, marks

cdef enum:
    _FIRST = 2  # rounds before the first look at the gap: each look costs more than a round

ctypedef fused real:
    float
    double


cdef struct Rule:  # when a chain is done: at a gap of tol a node, or after so many rounds; the largest cost of a node
    double tol
    Py_ssize_t max_iter
    double most


cdef struct Seat:  # what one thread works on: a chain's own forest, and rows of scores and marginals in double
    Forest chain
    Py_ssize_t* child
    Desk desk
    double* f
    double* q


cdef Seat _seat(Py_ssize_t steps, Py_ssize_t k, bint shared, bint single, size_t* at) noexcept nogil:
    """Room for chains of up to ``steps`` nodes; nothing is written at the address 0, which measures."""
    cdef Seat seat
    cdef bint measures = at[0] == 0
    cdef Py_ssize_t i
    cdef Py_ssize_t* parent = indices(at, steps)
    cdef Py_ssize_t* sibling = indices(at, steps)
    cdef Py_ssize_t* table = indices(at, steps)
    cdef unsigned char* flipped = marks(at, steps)
    seat.child = indices(at, steps)
    seat.f, seat.q = doubles(at, steps * k if single else 0), doubles(at, steps * k if single else 0)
    seat.desk = new_desk(steps, k, shared, at)
    seat.chain.parent, seat.chain.child, seat.chain.sibling = parent, seat.child, sibling
    seat.chain.table, seat.chain.flipped = table, flipped
    if not measures:
        for i in range(steps):
            parent[i], seat.child[i], sibling[i] = i - 1, i + 1, -1
            table[i], flipped[i] = 0 if shared else max(i - 1, 0), False
    return seat


cdef double _until(
    Replies loss, Seat* seat, const Tables* tables, const Component* part, const Rule* rule, double* E,
    Py_ssize_t n_tables, double* value
) noexcept nogil:
    """Sweep a chain until it is done: its gap, -1 where it is out of range. ``E`` has ``n_tables`` tables.

    How many rounds are still needed is guessed from how fast the gap has shrunk.
    """
    cdef Py_ssize_t n = part.end, rounds = _FIRST, done = 0
    cdef double before = rule.most * n, aim = rule.tol * n, gap, rate, needed
    cdef double[4] sums
    while True:
        rounds = min(rounds, rule.max_iter - done)
        memset(E, 0, n_tables * seat.desk.k * seat.desk.k * sizeof(double))
        if not play_component(loss, &seat.chain, tables, part, rounds, 1.0, &seat.desk, E, sums):
            return -1.0
        done += rounds
        value[0], gap = sums[0], max(sums[1] - sums[2], 0.0)
        if not gap > aim or done >= rule.max_iter:
            return gap
        rate = min(max(pow(gap / before, 1.0 / rounds), 0.05), 0.95)
        before = gap
        # Twice as many as the rate so far asks for: it slows down, and another look costs more.
        needed = 2.0 * log(aim / gap) / log(rate) if rule.tol > 0.0 else INFINITY
        rounds = <Py_ssize_t> ceil(min(needed, 4.0 * done))


cdef inline void _widen(const float* x, Py_ssize_t n, double* y) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = x[i]


cdef inline void _round(const double* x, Py_ssize_t n, float* y) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = <float> x[i]


cdef int _lengths(const Py_ssize_t* lengths, Py_ssize_t b, Py_ssize_t steps) except -1:
    cdef Py_ssize_t i
    for i in range(b):
        if not 0 <= lengths[i] <= steps:
            raise ValueError(f"lengths must lie in 0..{steps}; got {lengths[i]}")
    return 0


def sweeps(
    Replies loss not None, node, tops, W, bint shared, double eps, double tol, Py_ssize_t max_iter, double most,
    lengths, p, q, E, value, gap, lost, Py_ssize_t begin, Py_ssize_t end
):
    """Play the chains ``begin..end - 1`` of scores ``node`` (b, steps, k), each to a gap of ``tol`` a node at most.

    Tables ``W = exp((T - tops) / eps)`` are one (1, k, k) where ``shared``, with ``E`` (b, k, k) to sum over a chain's
    edges, else both are (b (steps - 1), k, k). ``E`` gets marginals divided by ``W``, ``p`` (b, steps, options) goes on
    from the replies there, ``q`` (b, steps, k) is of the type of ``node``, and value and gap are (b,). Chains beyond
    the range of probabilities are marked in ``lost`` (b,) instead. ``most`` is the largest cost of a node.
    """
    cdef Py_ssize_t b = extent(node, "node", 0), steps = extent(node, "node", 1), k = extent(node, "node", 2)
    cdef Py_ssize_t options = extent(p, "p", 2), m = 1 if shared else b * max(steps - 1, 0), i, n, first
    cdef bint single = is_single(node, "node")
    cdef Kind kind = SINGLE if single else DOUBLE
    cdef const void* f = cube(node, "node", kind, b, steps, k)
    cdef void* marginals = cube_out(q, "q", kind, b, steps, k)
    cdef double* replies = <double*> cube_out(p, "p", DOUBLE, b, steps, options)
    cdef double* edges = <double*> cube_out(E, "E", DOUBLE, b if shared else m, k, k)
    cdef double* values = <double*> vector_out(value, "value", DOUBLE, b)
    cdef double* gaps = <double*> vector_out(gap, "gap", DOUBLE, b)
    cdef unsigned char* beyond = <unsigned char*> vector_out(lost, "lost", MARK, b)
    cdef const Py_ssize_t* sizes = <const Py_ssize_t*> vector(lengths, "lengths", INDEX, b)
    cdef const double* largest = <const double*> vector(tops, "tops", DOUBLE, m)
    cdef const double* tables_at = <const double*> cube(W, "W", DOUBLE, m, k, k)
    cdef Tables tables
    cdef Component part
    cdef Rule rule
    cdef double found
    cdef size_t at = 0
    if not (k > 0 and 0 <= begin <= end <= b and max_iter >= 0 and eps > 0.0):
        raise ValueError(
            f"need k > 0, 0 <= begin <= end <= b, max_iter >= 0 and eps > 0; got {k=}, {begin=}, {end=}, {b=}, "
            f"{max_iter=}, {eps=}"
        )
    loss.fits(steps, k, options)
    _lengths(sizes, b, steps)
    _seat(steps, k, shared, single, &at)
    cdef Scratch room = Scratch(at)
    at = <size_t> room.at
    cdef Seat seat = _seat(steps, k, shared, single, &at)
    clear_desk(&seat.desk, steps, tables_at)
    rule.tol, rule.max_iter, rule.most = tol, max_iter, most
    tables.T, tables.eps = NULL, eps
    part.root, part.branched, part.single, part.options = 0, False, single, options
    with nogil:
        for i in range(begin, end):
            n = part.end = sizes[i]
            if n == 0:
                continue
            first = 0 if shared else i * (steps - 1)
            tables.tops, tables.W = largest + first, tables_at + first * k * k
            part.p = replies + i * steps * options
            part.f, part.q = seat.f, seat.q
            if single:
                _widen(<const float*> f + i * steps * k, n * k, seat.f)
            else:
                part.f, part.q = <const double*> f + i * steps * k, <double*> marginals + i * steps * k
            seat.child[n - 1] = -1
            found = _until(
                loss, &seat, &tables, &part, &rule, edges + (i if shared else first) * k * k, 1 if shared else n - 1,
                values + i
            )
            seat.child[n - 1] = n
            beyond[i], gaps[i] = found < 0.0, max(found, 0.0)
            if single and not beyond[i]:
                _round(seat.q, n * k, <float*> marginals + i * steps * k)


cdef struct Truth:  # padded chains of one type, which the function that reads them knows
    const void* node
    const void* edge
    void* q
    void* E
    const Py_ssize_t* target
    const Py_ssize_t* lengths
    double* value
    Py_ssize_t b, steps, k
    bint shared


cdef void _subtract(const Truth* x, const real* kind) noexcept nogil:
    cdef const real* S = <const real*> x.node
    cdef const real* T = <const real*> x.edge
    cdef real* q = <real*> x.q
    cdef real* E = <real*> x.E
    cdef Py_ssize_t b, t, i, e, y, z, k = x.k
    for b in range(x.b):
        for t in range(x.lengths[b]):
            i = b * x.steps + t
            y = x.target[i]
            x.value[b] -= S[i * k + y]
            q[i * k + y] -= 1.0
            if t > 0:
                z, e = x.target[i - 1], b * (x.steps - 1) + t - 1
                x.value[b] -= T[((0 if x.shared else e) * k + z) * k + y]
                E[((b if x.shared else e) * k + z) * k + y] -= 1.0


def subtract(node, edge, bint shared, target, lengths, value, q, E):
    """Take the score of the labels ``target`` (b, steps) from the values (b,), and their vertices from the marginals.

    ``node`` and ``q`` are (b, steps, k), ``edge`` is (1, k, k) and ``E`` (b, k, k) where ``shared``, else both are
    (b (steps - 1), k, k); all of one type.
    """
    cdef Truth x
    cdef Kind kind = SINGLE if is_single(node, "node") else DOUBLE
    cdef Py_ssize_t i, t
    x.b, x.steps, x.k = extent(node, "node", 0), extent(node, "node", 1), extent(node, "node", 2)
    x.shared = shared
    i = x.b * max(x.steps - 1, 0)
    x.node = cube(node, "node", kind, x.b, x.steps, x.k)
    x.edge = cube(edge, "edge", kind, 1 if shared else i, x.k, x.k)
    x.q = cube_out(q, "q", kind, x.b, x.steps, x.k)
    x.E = cube_out(E, "E", kind, x.b if shared else i, x.k, x.k)
    x.target = <const Py_ssize_t*> matrix(target, "target", INDEX, x.b, x.steps)
    x.lengths = <const Py_ssize_t*> vector(lengths, "lengths", INDEX, x.b)
    x.value = <double*> vector_out(value, "value", DOUBLE, x.b)
    _lengths(x.lengths, x.b, x.steps)
    for i in range(x.b):
        for t in range(x.lengths[i]):
            if not 0 <= x.target[i * x.steps + t] < x.k:
                raise ValueError(f"target must hold labels 0..{x.k - 1}; got {x.target[i * x.steps + t]}")
    with nogil:
        if kind == SINGLE:
            _subtract[float](&x, NULL)
        else:
            _subtract[double](&x, NULL)
