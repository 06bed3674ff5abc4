"""Cuts that a point violates: sets ``S`` of tokens with ``x(arcs into S) < 1``, by maximum flows from the root."""

from libc.math cimport INFINITY
from libc.string cimport memset
from nashlearn.kernels.checks cimport DOUBLE, MARK, extent, matrix, matrix_out
from nashlearn.kernels.scratch cimport Scratch, doubles, indices, marks


cdef Flow new_flow(Py_ssize_t n, size_t* at) noexcept nogil:
    cdef Flow flow
    cdef Py_ssize_t nodes = n + 1
    flow.residual, flow.inflow = doubles(at, nodes * nodes), doubles(at, nodes)
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
    """Capacities from ``x`` between neighbours; the root receives nothing."""
    cdef Py_ssize_t v, u, i
    for v in range(n + 1):
        for i in range(flow.degree[v]):
            u = flow.near[v * (n + 1) + i]
            flow.residual[u * (n + 1) + v] = x[(v - 1) * (n + 1) + u] if v > 0 else 0.0


cdef Py_ssize_t _reach_back(Py_ssize_t n, Py_ssize_t target, const Flow* flow) noexcept nogil:
    """Search backwards from ``target`` along capacity left, up to a merged source, which is returned, or -1."""
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
            if flow.previous[u] < 0 and flow.residual[u * (n + 1) + v] > none:
                flow.previous[u] = v
                if flow.source[u]:
                    return u
                flow.queue[last] = u
                last += 1
    return -1


cdef bint _flow_reaches_one(Py_ssize_t n, Py_ssize_t target, double tol, const Flow* flow) noexcept nogil:
    """Push flow from the merged root to ``target`` until 1 is reached, or stop at a smaller cut."""
    cdef Py_ssize_t u, v, w
    cdef double push, total = 0.0
    while total < 1.0 - tol:
        u = _reach_back(n, target, flow)
        if u < 0:
            return False
        push, v = INFINITY, u
        while v != target:
            w = flow.previous[v]
            push = min(push, flow.residual[v * (n + 1) + w])
            v = w
        v = u
        while v != target:
            w = flow.previous[v]
            flow.residual[v * (n + 1) + w] -= push
            flow.residual[w * (n + 1) + v] += push
            v = w
        total += push
    return True


cdef Py_ssize_t separate(
    const double* x, Py_ssize_t n, unsigned char* members, Py_ssize_t room, double tol, const Flow* flow
) noexcept nogil:
    # A token whose flow from the root is 1 joins the root: no violated cut parts them. The others each give a set.
    # Interior points use every arc a little: flows are tried without those arcs first, which are most.
    cdef Py_ssize_t d, u, v, turn, found = 0
    cdef double most, least = INFINITY, negligible = 0.1 * tol
    cdef bint reached
    memset(flow.source, 0, n + 1)
    flow.source[0] = True
    for d in range(n):
        flow.inflow[d + 1] = x[d * (n + 1)]
    for turn in range(n):
        v, most = 0, -1.0
        for u in range(1, n + 1):
            if not flow.source[u] and flow.inflow[u] > most:
                v, most = u, flow.inflow[u]
        if most < 1.0 - tol:
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
        flow.source[v] = True
        for d in range(n):
            flow.inflow[d + 1] += x[d * (n + 1) + v]
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
