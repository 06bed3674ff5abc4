"""Wolfe's method for the point of the arborescence polytope that is nearest to given scores [wolfe1976]_.

The point is kept as a convex combination of affinely independent trees. A best tree for the direction towards the
scores enters; then the affine minimiser over the trees is taken, trees that would get a negative weight leaving. The
inner product of two trees is the number of arcs they share, so the systems, each entry 1 more, are small and exact.
"""

from libc.math cimport INFINITY
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset
from nashlearn.kernels.checks cimport DOUBLE, cube_out, extent, vector_out
from nashlearn.kernels.dense cimport cholesky, cholesky_solve
from nashlearn.kernels.scratch cimport Scratch, doubles, indices
from nashlearn.kernels.tree_map cimport Workspace, best_labelled, new_workspace

cdef enum:
    _MOST = 4000  # trees that may enter
    _FEW = 64  # trees that there is room for at first
cdef double _DEPENDENT = 1e-10  # a pivot of the Gram matrix, of integers, that is 0 but for rounding


cdef Corral new_corral(Py_ssize_t n) noexcept nogil:
    cdef Corral corral
    corral.n, corral.room, corral.failed, corral.memory = n, 0, False, NULL
    _lay_corral(&corral, 0)
    return corral


cdef size_t _lay_corral(Corral* corral, size_t at) noexcept nogil:
    """Addresses from ``at`` on, for as many trees as there is to be room for; where they end."""
    cdef Py_ssize_t room = corral.room
    corral.V = indices(&at, room * corral.n)
    corral.G, corral.chol = doubles(&at, room * room), doubles(&at, room * room)
    corral.weight, corral.worth = doubles(&at, room), doubles(&at, room)
    corral.best, corral.other = doubles(&at, room), doubles(&at, room)
    return at


cdef bint _grow(Corral* corral, Py_ssize_t kept) noexcept nogil:
    """Double the room, keeping the first trees; False where there is no memory for it."""
    cdef Corral old = corral[0]
    cdef Py_ssize_t i
    corral.room = 2 * old.room if old.room else _FEW
    corral.memory = malloc(_lay_corral(corral, 0))
    if corral.memory == NULL:
        corral[0] = old
        corral.failed = True
        return False
    _lay_corral(corral, <size_t> corral.memory)
    if kept:
        memcpy(corral.V, old.V, kept * corral.n * sizeof(Py_ssize_t))
        memcpy(corral.weight, old.weight, kept * sizeof(double))
        memcpy(corral.worth, old.worth, kept * sizeof(double))
    for i in range(kept):
        memcpy(corral.G + i * corral.room, old.G + i * old.room, kept * sizeof(double))
        memcpy(corral.chol + i * corral.room, old.chol + i * old.room, kept * sizeof(double))
    free(old.memory)
    return True


cdef Search new_search(Py_ssize_t n, Py_ssize_t labels, size_t* at) noexcept nogil:
    cdef Search search
    cdef Py_ssize_t arcs = n * (n + 1)
    search.slope, search.arc = doubles(at, arcs * labels), doubles(at, arcs)
    search.label, search.code = indices(at, arcs), indices(at, n)
    return search


cdef void _affine(Corral* corral, Py_ssize_t k) noexcept nogil:
    """Weights, summing to 1, of the affine combination of trees nearest to the scores, into ``corral.best``."""
    cdef Py_ssize_t i
    cdef double total = 0.0, ones = 0.0, excess
    for i in range(k):
        corral.best[i], corral.other[i] = corral.worth[i], 1.0
    cholesky_solve(corral.chol, corral.room, k, corral.best)
    cholesky_solve(corral.chol, corral.room, k, corral.other)
    for i in range(k):
        total += corral.best[i]
        ones += corral.other[i]
    excess = (total - 1.0) / ones
    for i in range(k):
        corral.best[i] -= excess * corral.other[i]


cdef void _drop(Corral* corral, Py_ssize_t n, Py_ssize_t i, Py_ssize_t k) noexcept nogil:
    """Remove tree ``i``, keeping the order of the rest."""
    cdef Py_ssize_t r, c, room = corral.room
    for r in range(i, k - 1):
        memcpy(corral.V + r * n, corral.V + (r + 1) * n, n * sizeof(Py_ssize_t))
        corral.weight[r], corral.worth[r] = corral.weight[r + 1], corral.worth[r + 1]
    for r in range(k):
        for c in range(i, k - 1):
            corral.G[r * room + c] = corral.G[r * room + c + 1]
    for r in range(i, k - 1):
        memcpy(corral.G + r * room, corral.G + (r + 1) * room, (k - 1) * sizeof(double))


cdef double _best_code(
    const double* w,
    Py_ssize_t n,
    Py_ssize_t labels,
    bint single_root,
    Py_ssize_t* heads,
    const Workspace* work,
    const Search* search,
) noexcept nogil:
    """The score of the best tree of ``w``, each token's head and label as one number in ``search.code``."""
    cdef double score = best_labelled(w, n, labels, single_root, search.arc, search.label, heads, work)
    cdef Py_ssize_t d
    for d in range(n):
        search.code[d] = heads[d] * labels + search.label[d * (n + 1) + heads[d]]
    return score


cdef double _look(
    const double* w, Py_ssize_t n, Py_ssize_t labels, Corral* corral, Py_ssize_t k, double* x, const Search* search
) noexcept nogil:
    """Write the mixture of ``k`` trees into ``x`` and ``w - x`` into the slope; ``<w - x, x>``."""
    cdef Py_ssize_t i, d, a, width = (n + 1) * labels
    cdef double inside = 0.0
    memset(x, 0, n * width * sizeof(double))
    for i in range(k):
        for d in range(n):
            x[d * width + corral.V[i * n + d]] += corral.weight[i]
    for a in range(n * width):
        search.slope[a] = w[a] - x[a]
        if x[a] > 0.0:
            inside += search.slope[a] * x[a]
    return inside


cdef bint _enter(
    const double* w, Py_ssize_t n, Py_ssize_t labels, Corral* corral, Py_ssize_t k, const Search* search
) noexcept nogil:
    """Add the tree of ``search.code`` to ``k`` others; False where it is an affine combination of them."""
    cdef Py_ssize_t i, d, shared, room = corral.room
    cdef double worth = 0.0
    memcpy(corral.V + k * n, search.code, n * sizeof(Py_ssize_t))
    for i in range(k + 1):
        shared = 1
        for d in range(n):
            shared += corral.V[i * n + d] == search.code[d]
        corral.G[i * room + k] = corral.G[k * room + i] = shared
    for d in range(n):
        worth += w[d * (n + 1) * labels + search.code[d]]
    corral.weight[k], corral.worth[k] = 0.0, worth
    return cholesky(corral.G, room, corral.chol, room, k, k + 1, _DEPENDENT) == k + 1


cdef Py_ssize_t _settle(Corral* corral, Py_ssize_t n, Py_ssize_t k) noexcept nogil:
    """Move to the best mixture of ``k`` trees, those leaving that would get a negative weight; how many are left."""
    cdef Py_ssize_t i, leaving
    cdef double t, share
    cdef double* weight = corral.weight
    cdef double* best = corral.best
    while True:
        _affine(corral, k)
        t, leaving = 1.0, -1
        for i in range(k):
            if best[i] <= 0.0 and weight[i] - best[i] > 0.0:
                share = weight[i] / (weight[i] - best[i])
                if share < t:
                    t, leaving = share, i
        for i in range(k):
            weight[i] += t * (best[i] - weight[i])
        if leaving < 0:
            return k
        _drop(corral, n, leaving, k)
        k -= 1
        cholesky(corral.G, corral.room, corral.chol, corral.room, leaving, k, _DEPENDENT)


cdef double nearest_point(
    const double* w,
    Py_ssize_t n,
    Py_ssize_t labels,
    bint single_root,
    double* x,
    Py_ssize_t* heads,
    const Workspace* work,
    const Search* search,
    Corral* corral,
) noexcept nogil:
    cdef Py_ssize_t a, d, turn, k, width = (n + 1) * labels
    cdef double low, size = 0.0, gap = INFINITY, inside
    if corral.room == 0 and not _grow(corral, 0):
        return gap
    for d in range(n):
        low = 0.0
        for a in range(d * width, (d + 1) * width):
            if w[a] > -INFINITY:
                low = min(low, w[a])
        size -= low
    _best_code(w, n, labels, single_root, heads, work, search)
    _enter(w, n, labels, corral, 0, search)
    corral.weight[0], k = 1.0, 1
    for turn in range(_MOST):
        inside = _look(w, n, labels, corral, k, x, search)
        gap = _best_code(search.slope, n, labels, single_root, heads, work, search) - inside
        if gap <= 1e-14 * (n + size):
            return gap
        if k == corral.room and not _grow(corral, k):
            return gap
        # An affine combination of the others: only rounding lets it enter.
        if not _enter(w, n, labels, corral, k, search):
            return gap
        k = _settle(corral, n, k + 1)
    return gap


cdef struct Desk:  # all that projections of one size work on
    Workspace work
    Search search
    Py_ssize_t* heads


cdef size_t _lay(Desk* desk, Py_ssize_t n, Py_ssize_t labels, size_t at) noexcept nogil:
    desk.work, desk.search, desk.heads = new_workspace(n, &at), new_search(n, labels, &at), indices(&at, n)
    return at


cdef double _project(
    double* w, Py_ssize_t n, Py_ssize_t labels, bint single_root, double* x, Desk* desk, Corral* corral
) noexcept nogil:
    """Project ``w`` (n, n + 1, labels) into ``x``, each row shifted to the largest score 0; the gap, -1 for no tree."""
    cdef Py_ssize_t d, a, width = (n + 1) * labels
    cdef double top
    for d in range(n):
        top = -INFINITY
        for a in range(d * width, (d + 1) * width):
            top = max(top, w[a])
        if top > -INFINITY:
            for a in range(d * width, (d + 1) * width):
                w[a] -= top
    if best_labelled(
        w, n, labels, single_root, desk.search.arc, desk.search.label, desk.heads, &desk.work
    ) == -INFINITY:
        return -1.0
    return max(nearest_point(w, n, labels, single_root, x, desk.heads, &desk.work, &desk.search, corral), 0.0)


def project_labelled(w, Py_ssize_t n, bint single_root, x, gap):
    """Project a batch of labelled arcs (b, n (n + 1), labels) into ``x``; Frank-Wolfe gaps into ``gap`` (b).

    ``w``, finite or ``-inf``, is changed; a gap of -1 says that there is no tree, and nothing of the point then.
    """
    cdef Py_ssize_t i, b = extent(w, "w", 0), labels = extent(w, "w", 2), size
    cdef double* scores
    cdef double* points
    cdef double* gaps = <double*> vector_out(gap, "gap", DOUBLE, b)
    cdef Desk desk
    cdef Scratch memory
    cdef Corral corral
    if n < 1 or labels < 1 or n > extent(w, "w", 1):
        raise ValueError(f"there must be at least one token and one label, and n (n + 1) arcs; got {n} and {labels}")
    corral, size = new_corral(n), n * (n + 1) * labels
    scores = <double*> cube_out(w, "w", DOUBLE, b, n * (n + 1), labels)
    points = <double*> cube_out(x, "x", DOUBLE, b, n * (n + 1), labels)
    memory = Scratch(_lay(&desk, n, labels, 0))
    _lay(&desk, n, labels, <size_t> memory.at)
    with nogil:
        for i in range(b):
            gaps[i] = _project(scores + i * size, n, labels, single_root, points + i * size, &desk, &corral)
        free(corral.memory)
    if corral.failed:
        raise MemoryError("there is no room for the trees that a projection mixes")
