"""Which entries the game over arborescences is played with: near the best of their row, worth their price, or replies.

Few of the arcs of a sentence are used by either player; the interior point method is given those that may be.
"""

from libc.math cimport INFINITY
from libc.string cimport memset
from nashlearn.kernels.scratch cimport doubles, indices, marks
from nashlearn.kernels.tree_cuts cimport Flow, new_flow
from nashlearn.kernels.tree_map cimport best_tree, new_workspace
from nashlearn.kernels.tree_projection cimport new_cuts


cdef size_t lay_stage(Stage* s, Py_ssize_t n, Py_ssize_t labels, size_t at) noexcept nogil:
    cdef Py_ssize_t arcs = n * (n + 1), size = arcs * labels
    s.n, s.labels, s.most = n, labels, 6 * n + 16
    s.work, s.cuts, s.flow = new_workspace(n, &at), new_cuts(n, &at), new_flow(n, &at)
    s.theta = doubles(&at, size)
    s.arc, s.other, s.lift = doubles(&at, arcs), doubles(&at, arcs), doubles(&at, arcs)
    s.label, s.heads = indices(&at, arcs), indices(&at, n)
    s.usable, s.take = marks(&at, arcs), marks(&at, size)
    s.token, s.head, s.kind = indices(&at, size), indices(&at, size), indices(&at, size)
    s.sets, s.equality = marks(&at, s.most * n), marks(&at, s.most + 1)
    s.y, s.lam = doubles(&at, 2 * n), doubles(&at, 2 * (s.most + 1))
    return at


cdef Py_ssize_t _spread(Stage* s, Py_ssize_t sources, Py_ssize_t avoid) noexcept nogil:
    """Mark in ``flow.source`` the tokens reached from ``sources`` (1..n, in ``flow.queue``) without token ``avoid``.

    Arcs of finite ``s.other`` count. Answers how many are reached.
    """
    cdef Py_ssize_t d, u, first = 0, last = sources, n = s.n
    cdef unsigned char* reached = s.flow.source
    while first < last:
        u = s.flow.queue[first]
        first += 1
        for d in range(n):
            if d + 1 != avoid and d + 1 != u and not reached[d + 1] and s.other[d * (n + 1) + u] > -INFINITY:
                reached[d + 1] = True
                s.flow.queue[last] = d + 1
                last += 1
    return last


cdef void _find_usable(Stage* s) noexcept nogil:
    """Which arcs of finite ``s.other`` some tree holds; there must be one. O(n^2), or O(n^3) with forbidden arcs."""
    cdef Py_ssize_t d, h, r, m, n = s.n
    cdef unsigned char* usable = s.usable
    cdef bint complete = True
    for d in range(n):
        for h in range(n + 1):
            usable[d * (n + 1) + h] = h != d + 1 and s.other[d * (n + 1) + h] > -INFINITY
            complete = complete and (usable[d * (n + 1) + h] or h == d + 1)
    if complete:
        return
    if s.single_root:  # only a token that reaches all others can be the root's
        for r in range(1, n + 1):
            if usable[(r - 1) * (n + 1)]:
                memset(s.flow.source, 0, n + 1)
                s.flow.source[r] = True
                s.flow.queue[0] = r
                usable[(r - 1) * (n + 1)] = _spread(s, 1, 0) == n
    for d in range(n):
        memset(s.flow.source, 0, n + 1)
        m = 0
        for r in range(1, n + 1):
            if r != d + 1 and usable[(r - 1) * (n + 1)]:
                s.flow.source[r] = True
                s.flow.queue[m] = r
                m += 1
        _spread(s, m, d + 1)
        for h in range(1, n + 1):
            usable[d * (n + 1) + h] = usable[d * (n + 1) + h] and s.flow.source[h]


cdef void take_near(Stage* s, double reach) noexcept nogil:
    cdef Py_ssize_t d, h, j, a, n = s.n, L = s.labels
    cdef double top
    for d in range(n):
        top = -INFINITY
        for h in range(n + 1):
            if h != d + 1:
                a = d * (n + 1) + h
                for j in range(L):
                    top = max(top, s.theta[a * L + j] + s.lift[a])
        for a in range(d * (n + 1), (d + 1) * (n + 1)):
            for j in range(a * L, (a + 1) * L):
                if s.theta[j] > -INFINITY and s.theta[j] + s.lift[a] >= top - reach:
                    s.take[j] = True


cdef void take_priced(Stage* s, double slack) noexcept nogil:
    cdef Py_ssize_t d, h, j, c, a, n = s.n, L = s.labels, K = s.K + s.one
    cdef const unsigned char* inside
    cdef double price_p, price_q
    for d in range(n):
        for h in range(n + 1):
            a, price_p, price_q = d * (n + 1) + h, s.y[d], s.y[n + d]
            if h == 0 and s.one:
                price_p += s.lam[0]
                price_q += s.lam[K]
            for c in range(s.one, K):
                inside = s.sets + (c - s.one) * n
                if inside[d] and (h == 0 or not inside[h - 1]):
                    price_p += s.lam[c]
                    price_q += s.lam[K + c]
            for j in range(a * L, (a + 1) * L):
                if s.theta[j] > -INFINITY and (price_p > slack or s.theta[j] + price_q >= -slack):
                    s.take[j] = True


cdef void take_replies(Stage* s) noexcept nogil:
    cdef Py_ssize_t d, j, a, reply, L = s.labels
    for reply in range(2):
        best_tree(s.other if reply else s.arc, s.n, s.single_root, s.heads, &s.work)
        for d in range(s.n):
            a = d * (s.n + 1) + s.heads[d]
            for j in range(a * L, (a + 1) * L):
                if s.theta[j] > -INFINITY:
                    s.take[j] = True


cdef void list_entries(Stage* s) noexcept nogil:
    cdef Py_ssize_t a, j, m = 0, n = s.n, L = s.labels
    for a in range(n * (n + 1)):
        s.other[a] = -INFINITY
        for j in range(L):
            if s.take[a * L + j]:
                s.other[a] = 0.0
    _find_usable(s)
    for a in range(n * (n + 1)):
        if s.usable[a]:
            for j in range(L):
                if s.take[a * L + j]:
                    s.token[m], s.head[m], s.kind[m] = a // (n + 1), a % (n + 1), j
                    m += 1
    s.m = m
