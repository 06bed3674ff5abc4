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
    s.dominators = <unsigned long long*> doubles(&at, n * ((n + 63) // 64))
    s.token, s.head, s.kind = indices(&at, size), indices(&at, size), indices(&at, size)
    s.sets, s.equality = marks(&at, s.most * n), marks(&at, s.most + 1)
    s.y, s.lam = doubles(&at, 2 * n), doubles(&at, 2 * (s.most + 1))
    return at


cdef void _spread(Stage* s, Py_ssize_t source, bint back) noexcept nogil:
    """Mark in ``flow.source`` the tokens reached from token ``source`` (1..n) that were not; ``back``: that reach it.

    Arcs of finite ``s.other`` count. Cost: O(n) for each token that is new.
    """
    cdef Py_ssize_t d, u, a, first = 0, last = 1, n = s.n
    cdef unsigned char* reached = s.flow.source
    reached[source], s.flow.queue[0] = True, source
    while first < last:
        u = s.flow.queue[first]
        first += 1
        for d in range(1, n + 1):
            a = (u - 1) * (n + 1) + d if back else (d - 1) * (n + 1) + u
            if d != u and not reached[d] and s.other[a] > -INFINITY:
                reached[d] = True
                s.flow.queue[last] = d
                last += 1


cdef void _find_roots(Stage* s) noexcept nogil:
    """Only a token that reaches all others can be the root's: of those there are, the search that ends last has one."""
    cdef Py_ssize_t r, last = 1, n = s.n
    memset(s.flow.source, 0, n + 1)
    for r in range(1, n + 1):
        if not s.flow.source[r]:
            _spread(s, r, False)
            last = r
    memset(s.flow.source, 0, n + 1)
    _spread(s, last, True)
    for r in range(1, n + 1):
        s.usable[(r - 1) * (n + 1)] &= s.flow.source[r]


cdef void _find_dominators(Stage* s) noexcept nogil:
    """For each token the set of tokens that every way to it from the root goes through, itself among them, as bits."""
    cdef Py_ssize_t d, h, i, words = (s.n + 63) // 64, n = s.n
    cdef unsigned long long* own
    cdef unsigned long long now
    cdef bint changed = True
    for d in range(n):
        own = s.dominators + d * words
        for i in range(words):
            own[i] = 0 if s.usable[d * (n + 1)] else ~<unsigned long long> 0
        own[d // 64] |= <unsigned long long> 1 << (d % 64)
    while changed:
        changed = False
        for d in range(n):
            if s.usable[d * (n + 1)]:
                continue
            own = s.dominators + d * words
            for i in range(words):
                now = ~<unsigned long long> 0
                for h in range(n):
                    if s.usable[d * (n + 1) + h + 1]:
                        now &= s.dominators[h * words + i]
                if i == d // 64:
                    now |= <unsigned long long> 1 << (d % 64)
                changed |= now != own[i]
                own[i] = now


cdef void _find_usable(Stage* s) noexcept nogil:
    """Which arcs of finite ``s.other`` some tree holds; there must be one.

    They are those from heads that the root reaches without the dependent. Cost: a few passes over the arcs.
    """
    cdef Py_ssize_t d, h, n = s.n, words = (n + 63) // 64
    cdef bint complete = True
    for d in range(n):
        for h in range(n + 1):
            s.usable[d * (n + 1) + h] = h != d + 1 and s.other[d * (n + 1) + h] > -INFINITY
            complete = complete and (s.usable[d * (n + 1) + h] or h == d + 1)
    if complete:
        return
    if s.single_root:
        _find_roots(s)
    _find_dominators(s)
    for d in range(n):
        for h in range(n):
            if s.dominators[h * words + d // 64] >> (d % 64) & 1:
                s.usable[d * (n + 1) + h + 1] = False


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
