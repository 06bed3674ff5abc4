"""Cuts that a point violates: sets ``S`` of tokens with ``x(arcs into S) < 1``, by maximum flows from the root."""

from libc.math cimport INFINITY
from libc.string cimport memset
from nashlearn.kernels.checks cimport DOUBLE, MARK, extent, matrix, matrix_out
from nashlearn.kernels.scratch cimport Scratch, doubles, indices, marks


cdef Flow new_flow(Py_ssize_t n, size_t* at) noexcept nogil:
    cdef Flow flow
    cdef Py_ssize_t nodes = n + 1
    flow.residual, flow.inflow = doubles(at, nodes * nodes), doubles(at, nodes)
    flow.feed, flow.supply = doubles(at, nodes), doubles(at, nodes)
    flow.near, flow.degree = indices(at, nodes * nodes), indices(at, nodes)
    flow.previous, flow.queue = indices(at, nodes), indices(at, nodes)
    flow.source = marks(at, nodes)
    return flow


cdef void _join(Py_ssize_t u, Py_ssize_t v, Py_ssize_t n, const Flow* flow) noexcept nogil:
    """Make nodes neighbours."""
    flow.near[u * (n + 1) + flow.degree[u]] = v
    flow.near[v * (n + 1) + flow.degree[v]] = u
    flow.degree[u] += 1
    flow.degree[v] += 1


cdef void _connect(const double* x, Py_ssize_t n, double least, const Flow* flow) noexcept nogil:
    """Neighbours: nodes that an arc of more than ``least`` joins, in either direction."""
    cdef Py_ssize_t d, h
    memset(flow.degree, 0, (n + 1) * sizeof(Py_ssize_t))
    for d in range(n):
        for h in range(n + 1):
            if x[d * (n + 1) + h] > least and h != d + 1:
                if not (0 < h < d + 1 and x[(h - 1) * (n + 1) + d + 1] > least):  # else joined from the other side
                    _join(d + 1, h, n, flow)


cdef void _refill(const double* x, Py_ssize_t n, const Flow* flow) noexcept nogil:
    """Capacities from ``x`` between neighbours that are not merged with the root, and from it; to it there is none."""
    cdef Py_ssize_t v, u, i
    for v in range(n + 1):
        flow.supply[v] = flow.feed[v]
        if v == 0 or not flow.source[v]:
            for i in range(flow.degree[v]):
                u = flow.near[v * (n + 1) + i]
                flow.residual[v * (n + 1) + u] = x[(v - 1) * (n + 1) + u] if v > 0 else 0.0


cdef Py_ssize_t _reach_back(Py_ssize_t n, Py_ssize_t target, const Flow* flow) noexcept nogil:
    """Search backwards from ``target`` along capacity left, up to a token with supply, which is returned, or -1."""
    cdef Py_ssize_t v, u, i, first = 0, last = 1
    cdef double none = 1e-15  # as much capacity does not count
    for v in range(n + 1):
        flow.previous[v] = -1
    flow.previous[target] = flow.queue[0] = target
    while first < last:
        v = flow.queue[first]
        first += 1
        for i in range(flow.degree[v]):
            u = flow.near[v * (n + 1) + i]
            if flow.previous[u] < 0 and not flow.source[u] and flow.residual[v * (n + 1) + u] > none:
                flow.previous[u] = v
                if flow.supply[u] > none:
                    return u
                flow.queue[last] = u
                last += 1
    return -1


cdef void _push(Py_ssize_t n, Py_ssize_t u, Py_ssize_t v, double amount, const Flow* flow) noexcept nogil:
    """Let so much flow from token ``u`` to ``v``."""
    flow.residual[v * (n + 1) + u] -= amount
    flow.residual[u * (n + 1) + v] += amount


cdef bint _flow_reaches_one(Py_ssize_t n, Py_ssize_t target, double tol, const Flow* flow) noexcept nogil:
    """Push flow from the merged root to ``target`` until 1 is reached, or stop at a smaller cut."""
    cdef Py_ssize_t i, u, v
    cdef double push, total = flow.supply[target]
    flow.supply[target] = 0.0
    for i in range(flow.degree[target]):  # ways of two arcs need no search
        u = flow.near[target * (n + 1) + i]
        if not flow.source[u]:
            push = min(flow.supply[u], flow.residual[target * (n + 1) + u])
            if push > 0.0:
                _push(n, u, target, push, flow)
                flow.supply[u] -= push
                total += push
    while total < 1.0 - tol:
        u = _reach_back(n, target, flow)
        if u < 0:
            return False
        push, v = flow.supply[u], u
        while v != target:
            push = min(push, flow.residual[flow.previous[v] * (n + 1) + v])
            v = flow.previous[v]
        flow.supply[u] -= push
        v = u
        while v != target:
            _push(n, v, flow.previous[v], push, flow)
            v = flow.previous[v]
        total += push
    return True


cdef void _merge(const double* x, Py_ssize_t n, Py_ssize_t v, const Flow* flow) noexcept nogil:
    """Let token ``v`` join the root."""
    cdef Py_ssize_t u
    cdef double more
    flow.source[v] = True
    for u in range(1, n + 1):
        more = x[(u - 1) * (n + 1) + v]
        flow.inflow[u] += more
        if v > 0:
            flow.feed[u] = 0.0 if flow.source[u] else flow.feed[u] + max(more, 0.0)


cdef double _fed(const double* x, Py_ssize_t n, Py_ssize_t v, const Flow* flow) noexcept nogil:
    """What flows from the merged root to token ``v`` by single arcs and by ways of two, which share no arc. O(n)."""
    cdef Py_ssize_t u
    cdef double total = flow.feed[v]
    cdef const double* row = x + (v - 1) * (n + 1)
    for u in range(1, v):
        total += max(min(row[u], flow.feed[u]), 0.0)
    for u in range(v + 1, n + 1):
        total += max(min(row[u], flow.feed[u]), 0.0)
    return total


cdef Py_ssize_t separate(
    const double* x, Py_ssize_t n, unsigned char* members, Py_ssize_t room, double tol, const Flow* flow
) noexcept nogil:
    # A token whose flow from the root is 1 joins the root: no violated cut parts them. The others each give a set.
    # Interior points use every arc a little: flows are tried without those arcs first, which are most.
    cdef Py_ssize_t d, u, v, turn, found = 0
    cdef double most, least = INFINITY, negligible = 0.1 * tol
    cdef bint reached
    memset(flow.source, 0, n + 1)
    flow.source[0], flow.feed[0] = True, 0.0
    for d in range(n):
        flow.inflow[d + 1] = x[d * (n + 1)]
        flow.feed[d + 1] = max(x[d * (n + 1)], 0.0)
    for turn in range(n):
        v, most = 0, -1.0
        for u in range(1, n + 1):
            if not flow.source[u] and flow.inflow[u] > most:
                v, most = u, flow.inflow[u]
        if most < 1.0 - tol and (v == 0 or _fed(x, n, v, flow) < 1.0 - tol):  # 0 where all sums are below -1
            if least == INFINITY:
                least = negligible
                _connect(x, n, least, flow)
            _refill(x, n, flow)
            reached = _flow_reaches_one(n, v, tol, flow)
            if not reached and least > 0.0:
                least = 0.0
                _connect(x, n, least, flow)
                _refill(x, n, flow)
                reached = _flow_reaches_one(n, v, tol, flow)
            if not reached:
                if found == room:
                    return found
                for d in range(n):
                    members[found * n + d] = flow.previous[d + 1] >= 0
                found += 1
        _merge(x, n, v, flow)
    return found


def violated_cuts(x, members, double tol):
    """Cuts that ``x`` (n, n + 1), whose rows sum to 1, violates by more than ``tol``; how many were written.

    Row by row the tokens of each into ``members`` (room, n); there are at most ``n``. Cost: O(n^2), and one flow on the
    arcs in use for each token that the root and those joined to it do not feed.
    """
    cdef Py_ssize_t n = extent(x, "x", 0), room = extent(members, "members", 0), found
    cdef const double* point = <const double*> matrix(x, "x", DOUBLE, n, n + 1)
    cdef unsigned char* sets = <unsigned char*> matrix_out(members, "members", MARK, room, n)
    cdef size_t at = 0
    cdef Flow flow = new_flow(n, &at)
    cdef Scratch memory = Scratch(at)
    at = <size_t> memory.at
    flow = new_flow(n, &at)
    with nogil:
        found = separate(point, n, sets, room, tol, &flow)
    return found
