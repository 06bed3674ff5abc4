"""Best spanning arborescences: greedy heads where they make a tree, else Tarjan's algorithm on dense scores.

A tree of ``n`` tokens gives each token ``d = 0..n-1`` a head ``h = 0..n``; 0 is the root and ``h`` token ``h - 1``.
The algorithm grows a path of best arcs backwards and contracts each cycle that closes [tarjan1977]_. The rows of a
cycle are merged into one, sources stay tokens, so that every token is merged at most twice: O(n^2) in all.

Single root: arcs from the root compete only where a component has no other arc left. No cycle passes through the
root, so this is the lexicographic optimum (fewest root arcs, then largest score), without large constants.

The values of the arcs chosen for the contracted sets are the dual solution of the linear programme
``max <scores, x>``, ``x(arcs into S) >= 1`` for every set ``S`` of tokens [edmonds1967]_.
"""

from libc.math cimport INFINITY
from libc.string cimport memset
from nashlearn.kernels.checks cimport (
    DOUBLE,
    INDEX,
    MARK,
    SINGLE,
    cube,
    extent,
    is_single,
    matrix_out,
    vector,
    vector_out,
    within,
)
from nashlearn.kernels.scratch cimport Scratch, doubles, indices, marks


cdef Workspace new_workspace(Py_ssize_t n, size_t* at) noexcept nogil:
    cdef Workspace work
    work.value, work.paid = doubles(at, n * (n + 1)), doubles(at, 2 * n)
    work.source, work.end, work.row = indices(at, 2 * n), indices(at, 2 * n), indices(at, 2 * n)
    work.parent, work.state = indices(at, 2 * n), indices(at, 2 * n)
    work.top, work.path = indices(at, n), indices(at, n)
    work.token = <int*> marks(at, n * (n + 1) * <Py_ssize_t> sizeof(int))
    work.settled = marks(at, 2 * n)
    return work


cdef bint _reaches_root(const Py_ssize_t* heads, Py_ssize_t n, Py_ssize_t* mark) noexcept nogil:
    """Whether every token does; ``mark`` is (n) scratch."""
    cdef Py_ssize_t d, u
    memset(mark, 0, n * sizeof(Py_ssize_t))
    for d in range(n):
        u = d
        while mark[u] == 0:
            mark[u] = d + 1
            if heads[u] == 0:
                break
            u = heads[u] - 1
        if mark[u] == d + 1 and heads[u] != 0:
            return False
    return True


cdef Py_ssize_t _roots(const Py_ssize_t* heads, Py_ssize_t n) noexcept nogil:
    """How many tokens have the root as their head."""
    cdef Py_ssize_t d, count = 0
    for d in range(n):
        count += heads[d] == 0
    return count


cdef bint _greedy(const double* scores, Py_ssize_t n, Py_ssize_t* heads, const Workspace* work) noexcept nogil:
    """The best head of each token by itself; False where one has none."""
    cdef Py_ssize_t d, h, at
    cdef double best
    cdef const double* row
    for d in range(n):
        best, at, row = -INFINITY, -1, scores + d * (n + 1)
        for h in range(d + 1):
            if row[h] > best:
                best, at = row[h], h
        for h in range(d + 2, n + 1):
            if row[h] > best:
                best, at = row[h], h
        if at < 0:
            return False
        heads[d] = at
        work.paid[d], work.source[d], work.end[d] = best, at, d
    return True


cdef Py_ssize_t best_tree(
    const double* scores, Py_ssize_t n, bint single_root, Py_ssize_t* heads, const Workspace* work
) noexcept nogil:
    cdef Py_ssize_t d, count, roots
    cdef int root_last
    if not _greedy(scores, n, heads, work):
        return 0
    roots = _roots(heads, n)
    if roots > 0 and (roots == 1 or not single_root) and _reaches_root(heads, n, work.path):
        for d in range(n):
            work.parent[d] = -1
        return n
    for root_last in range(2):
        count = _contract(scores, n, root_last, work)
        if count == 0:
            return 0
        _expand(n, count, heads, work)
        if not single_root or _roots(heads, n) == 1:
            return count
    return 0


cdef double best_labelled(
    const double* theta,
    Py_ssize_t n,
    Py_ssize_t labels,
    bint single_root,
    double* arc,
    Py_ssize_t* label,
    Py_ssize_t* heads,
    const Workspace* work,
) noexcept nogil:
    cdef Py_ssize_t a, d, j, at
    cdef double best, total = 0.0
    cdef const double* own
    for a in range(n * (n + 1)):
        own = theta + a * labels
        best, at = own[0], 0
        for j in range(1, labels):
            if own[j] > best:
                best, at = own[j], j
        arc[a], label[a] = best, at
    if best_tree(arc, n, single_root, heads, work) == 0:
        return -INFINITY
    for d in range(n):
        total += arc[d * (n + 1) + heads[d]]
    return total


cdef bint _choose(const Workspace* work, Py_ssize_t c, Py_ssize_t n, bint root_last) noexcept nogil:
    """Choose the best arc into component ``c``; False where there is none."""
    cdef const double* row = work.value + work.row[c] * (n + 1)
    cdef double best = -INFINITY
    cdef Py_ssize_t h, at = -1
    for h in range(1 if root_last else 0, n + 1):
        if row[h] > best:
            best, at = row[h], h
    if at < 0 and root_last and row[0] > -INFINITY:
        best, at = row[0], 0
    if at < 0:
        return False
    work.paid[c], work.source[c], work.end[c] = best, at, work.token[work.row[c] * (n + 1) + at]
    return True


cdef Py_ssize_t _contract(const double* scores, Py_ssize_t n, bint root_last, const Workspace* work) noexcept nogil:
    """Choose an arc into every component until none is left loose; the number of components, or 0."""
    cdef Py_ssize_t d, h, i, c, start, length, first, count = n
    cdef Py_ssize_t* top = work.top
    cdef Py_ssize_t* state = work.state
    cdef Py_ssize_t* path = work.path
    for d in range(n):
        for h in range(n + 1):
            work.value[d * (n + 1) + h] = scores[d * (n + 1) + h]
            work.token[d * (n + 1) + h] = <int> d
        work.value[d * (n + 1) + d + 1] = -INFINITY
        work.row[d] = top[d] = d
        state[d], work.parent[d] = 0, -1
    for start in range(n):
        if state[top[start]] != 0:
            continue
        length, c = 0, top[start]
        while True:
            state[c] = 1
            path[length] = c
            length += 1
            if not _choose(work, c, n, root_last):
                return 0
            h = work.source[c]
            if h == 0 or state[top[h - 1]] == 2:
                for i in range(length):
                    state[path[i]] = 2
                break
            c = top[h - 1]
            if state[c] == 1:
                first = length - 1
                while path[first] != c:
                    first -= 1
                _merge(work, n, first, length, count)
                length, c = first, count
                count += 1
    return count


cdef void _merge(
    const Workspace* work, Py_ssize_t n, Py_ssize_t first, Py_ssize_t length, Py_ssize_t new
) noexcept nogil:
    """Contract the cycle ``path[first:length]`` into the component ``new``."""
    cdef Py_ssize_t a = work.path[first], into = work.row[a], h, i, c, d
    cdef double cost = work.paid[a], v
    cdef double* target = work.value + into * (n + 1)
    cdef int* ends = work.token + into * (n + 1)
    cdef const double* other
    cdef const int* other_ends
    for h in range(n + 1):
        target[h] -= cost
    work.parent[a] = new
    for i in range(first + 1, length):
        c = work.path[i]
        work.parent[c] = new
        cost = work.paid[c]
        other, other_ends = work.value + work.row[c] * (n + 1), work.token + work.row[c] * (n + 1)
        for h in range(n + 1):
            v = other[h] - cost
            if v > target[h]:
                target[h], ends[h] = v, other_ends[h]
    work.row[new], work.parent[new], work.state[new] = into, -1, 0
    for d in range(n):
        if work.parent[work.top[d]] == new:
            work.top[d] = new
            target[d + 1] = -INFINITY


cdef void _expand(Py_ssize_t n, Py_ssize_t count, Py_ssize_t* heads, const Workspace* work) noexcept nogil:
    """Undo the contractions: the arc into a set takes the place of the cycle's arc into the same token."""
    cdef Py_ssize_t c, d, u
    memset(work.settled, 0, count)
    for c in range(count - 1, -1, -1):
        if work.settled[c]:
            continue
        d = u = work.end[c]
        heads[d] = work.source[c]
        while u != c:
            work.settled[u] = True
            u = work.parent[u]


cdef Py_ssize_t contracted_sets(
    Py_ssize_t n, Py_ssize_t count, const Workspace* work, unsigned char* members, double* prices
) noexcept nogil:
    cdef Py_ssize_t c, d, u, k = 0
    for c in range(n, count):
        if work.paid[c] != 0.0:
            for d in range(n):
                u = d
                while u != -1 and u < c:
                    u = work.parent[u]
                members[k * n + d] = u == c
            prices[k] = -work.paid[c]
            k += 1
    return k


def is_tree(heads):
    """Whether every token of ``heads`` (n), each 0 (the root) to n, reaches the root."""
    cdef Py_ssize_t n = extent(heads, "heads", 0)
    cdef const Py_ssize_t* own = <const Py_ssize_t*> vector(heads, "heads", INDEX, n)
    cdef Scratch memory = Scratch(n * sizeof(Py_ssize_t))
    cdef bint found
    within(own, n, n + 1, "heads")
    with nogil:
        found = _reaches_root(own, n, <Py_ssize_t*> memory.at)
    return found


def best_trees(scores, bint single_root, heads, feasible):
    """Best trees of a batch (b, n, n + 1) into ``heads`` (b, n); ``feasible`` (b) tells where there is one.

    ``scores[d, d + 1]`` is not read and ``-inf`` forbids an arc; heads without a tree are unspecified. Cost: O(n^2)
    for each.
    """
    cdef bint single = is_single(scores, "scores")
    cdef Py_ssize_t i, a, b = extent(scores, "scores", 0), n = extent(scores, "scores", 1), size = n * (n + 1)
    cdef const void* given = cube(scores, "scores", SINGLE if single else DOUBLE, b, n, n + 1)
    cdef Py_ssize_t* found = <Py_ssize_t*> matrix_out(heads, "heads", INDEX, b, n)
    cdef unsigned char* exists = <unsigned char*> vector_out(feasible, "feasible", MARK, b)
    cdef size_t at = 0
    cdef Workspace work = new_workspace(n, &at)
    cdef Scratch memory = Scratch(at + size * sizeof(double))
    cdef double* wide
    cdef const double* own
    at = <size_t> memory.at
    work, wide = new_workspace(n, &at), doubles(&at, size)
    with nogil:
        for i in range(b):
            own = <const double*> given + i * size
            if single:
                for a in range(size):
                    wide[a] = (<const float*> given)[i * size + a]
                own = wide
            exists[i] = best_tree(own, n, single_root, found + i * n, &work) > 0
