"""The loops of published algorithms on trees: ADMM on Martin's polytope, Frank-Wolfe in two ways ([li2022]_, sec. 4).

Compiled when they are first asked for (``reproduce.compiled``), with the oracle of the library.
"""

from libc.math cimport INFINITY, fabs, sqrt
from libc.string cimport memcpy, memset
from nashlearn.kernels.checks cimport DOUBLE, cube, cube_out, extent, matrix, matrix_out
from nashlearn.kernels.scratch cimport Scratch, doubles, indices
from nashlearn.kernels.tree_map cimport Workspace, best_labelled, best_tree, new_workspace

cdef enum:
    _INNER = 2000  # steps for the projection onto one copy's constraints
    _HALVINGS = 100
cdef double _TINY = 1e-12


cdef void _simplex(const double* v, Py_ssize_t k, double* order, double* out) noexcept nogil:
    """The nearest point of the simplex; ``order`` (k) is scratch."""
    cdef Py_ssize_t i, j
    cdef double total = 0.0, t = 0.0
    for i in range(k):
        j = i
        while j > 0 and order[j - 1] < v[i]:
            order[j] = order[j - 1]
            j -= 1
        order[j] = v[i]
    for i in range(k):
        total += order[i]
        if order[i] > (total - 1.0) / (i + 1.0):
            t = (total - 1.0) / (i + 1.0)
    for i in range(k):
        out[i] = max(v[i] - t, 0.0)


cdef struct Desk:  # a sentence of n tokens with L labels, and what the steps work on
    Py_ssize_t n, L, size
    double* x  # (n, n + 1, L), as all up to `flat`
    double* old
    double* mixed
    double* u  # (n, n, n + 1, L) copies
    double* dual  # and their multipliers
    double* flat  # ((n + 1) L)
    double* order  # ((n + 1) L)
    double* shifted  # ((n + 1) L)
    double* rho  # (n) penalties
    double* z  # (n, n + 1, n + 1) undirected trees
    double* edge  # (n + 1, n + 1), as all below
    double* ahead
    double* before


cdef size_t _lay(Desk* s, Py_ssize_t n, Py_ssize_t L, size_t at) noexcept nogil:
    cdef Py_ssize_t size = n * (n + 1) * L, width = (n + 1) * L, nodes = (n + 1) * (n + 1)
    s.n, s.L, s.size = n, L, size
    s.x, s.old, s.mixed = doubles(&at, size), doubles(&at, size), doubles(&at, size)
    s.u, s.dual = doubles(&at, n * size), doubles(&at, n * size)
    s.flat, s.order, s.shifted = doubles(&at, width), doubles(&at, width), doubles(&at, width)
    s.rho, s.z = doubles(&at, n), doubles(&at, n * nodes)
    s.edge, s.ahead, s.before = doubles(&at, nodes), doubles(&at, nodes), doubles(&at, nodes)
    return at


cdef void _rows(const double* v, bint single_root, Desk* s, double* out) noexcept nogil:
    """``U_r``: one head for each token; with a single root the root arcs sum to 1, by bisection on their price."""
    cdef Py_ssize_t d, j, turn, L = s.L, width = (s.n + 1) * s.L
    cdef double most = 0.0, low, high, roots, price = 0.0
    for j in range(s.size):
        most = max(most, fabs(v[j]))
    low, high = -most * 2.0 - 2.0, most * 2.0 + 2.0
    for turn in range(_HALVINGS if single_root else 1):
        price = 0.5 * (low + high) if single_root else 0.0
        roots = 0.0
        for d in range(s.n):
            for j in range(width):
                s.shifted[j] = v[d * width + j] - (price if j < L else 0.0)
            for j in range((d + 1) * L, (d + 2) * L):
                s.shifted[j] = -INFINITY
            _simplex(s.shifted, width, s.order, s.flat)
            for j in range(width):
                out[d * width + j] = s.flat[j]
                if j < L:
                    roots += s.flat[j]
        if roots > 1.0:
            low = price
        else:
            high = price


cdef void _edges(const double* v, Desk* s) noexcept nogil:
    """The sum of ``v`` over the arcs of each undirected edge, both ways."""
    cdef Py_ssize_t d, h, j, n = s.n, L = s.L
    memset(s.edge, 0, (n + 1) * (n + 1) * sizeof(double))
    for d in range(n):
        for h in range(n + 1):
            if h != d + 1:
                for j in range(L):
                    s.edge[(d + 1) * (n + 1) + h] += v[(d * (n + 1) + h) * L + j]
                    s.edge[h * (n + 1) + d + 1] += v[(d * (n + 1) + h) * L + j]


cdef double _count(Py_ssize_t a, Py_ssize_t b, Py_ssize_t L) noexcept nogil:
    """Arcs of the edge between two nodes: each way one for each label, none into the root."""
    return L if a == 0 or b == 0 else 2.0 * L


cdef double _descend(Desk* s, Py_ssize_t k, double* z, double ahead) noexcept nogil:
    """A projected gradient step for the tree away from ``k``, then as far ``ahead`` again; how far it went."""
    cdef Py_ssize_t node, i, at, n = s.n
    cdef double step = 0.25 * s.L, slope, moved = 0.0  # the least number of arcs of an edge over the curvature
    memcpy(s.before, z, (n + 1) * (n + 1) * sizeof(double))
    for node in range(n + 1):
        if node == k:
            continue
        at = 0
        for i in range(n + 1):
            if i != node:
                slope = s.ahead[node * (n + 1) + i] + s.ahead[i * (n + 1) + node] - s.edge[node * (n + 1) + i]
                s.shifted[at] = s.ahead[node * (n + 1) + i] - step * (2.0 * slope / _count(node, i, s.L))
                at += 1
        _simplex(s.shifted, n, s.order, s.flat)
        at = 0
        for i in range(n + 1):
            if i != node:
                z[node * (n + 1) + i] = s.flat[at]
                at += 1
    for i in range((n + 1) * (n + 1)):
        moved = max(moved, fabs(z[i] - s.before[i]))
        s.ahead[i] = z[i] + ahead * (z[i] - s.before[i])
    return moved


cdef void _copy(const double* v, Py_ssize_t k, Desk* s, double* z, double* out) noexcept nogil:
    """``U_k``: the nearest ``x`` whose undirected edges carry a tree directed away from node ``k``; ``z`` is its start.

    ``z[j, i]`` is the arc into node ``j`` from ``i``; accelerated projected gradients over one simplex a node.
    """
    cdef Py_ssize_t d, h, j, a, turn, n = s.n, L = s.L
    cdef double speed = 1.0, faster, moved, share
    _edges(v, s)
    memcpy(s.ahead, z, (n + 1) * (n + 1) * sizeof(double))
    for turn in range(_INNER):
        faster = 0.5 * (1.0 + sqrt(1.0 + 4.0 * speed * speed))
        moved = _descend(s, k, z, (speed - 1.0) / faster)
        speed = faster
        if moved < _TINY:
            break
    memset(out, 0, s.size * sizeof(double))
    for d in range(n):
        for h in range(n + 1):
            if h != d + 1:
                a = (d + 1) * (n + 1) + h
                share = (z[a] + z[h * (n + 1) + d + 1] - s.edge[a]) / _count(d + 1, h, L)
                for j in range((d * (n + 1) + h) * L, (d * (n + 1) + h + 1) * L):
                    out[j] = v[j] + share


cdef void _penalise(Desk* s, Py_ssize_t k) noexcept nogil:
    """Update the multipliers of copy ``k``, and its penalty by the published scheme."""
    cdef double* dual = s.dual + k * s.size
    cdef const double* u = s.u + k * s.size
    cdef double apart = 0.0, change = 0.0, factor
    cdef Py_ssize_t a
    for a in range(s.size):
        dual[a] += s.x[a] - u[a]
        apart += (s.x[a] - u[a]) * (s.x[a] - u[a])
        change += (s.x[a] - s.old[a]) * (s.x[a] - s.old[a])
    factor = 1.1 if sqrt(apart) > s.rho[k] * sqrt(change) else 1.0 / 1.1
    s.rho[k] *= factor
    for a in range(s.size):
        dual[a] /= factor


cdef void _admm_step(const double* w, bint single_root, Desk* s) noexcept nogil:
    cdef Py_ssize_t a, k, n = s.n, nodes = s.n + 1
    cdef double total = 0.0, scale
    memcpy(s.old, s.x, s.size * sizeof(double))
    for k in range(n):
        scale = s.rho[k] * nodes
        for a in range(s.size):
            s.mixed[a] = (2.0 * w[a] + scale * (s.x[a] + s.dual[k * s.size + a])) / (2.0 + scale)
        _copy(s.mixed, k + 1, s, s.z + k * nodes * nodes, s.u + k * s.size)
    for a in range(s.size):
        s.mixed[a] = 2.0 * w[a]
    for k in range(n):
        scale = nodes * s.rho[k]
        total += s.rho[k]
        for a in range(s.size):
            s.mixed[a] += scale * (s.u[k * s.size + a] - s.dual[k * s.size + a])
    for a in range(s.size):
        s.mixed[a] /= 2.0 + nodes * total
    _rows(s.mixed, single_root, s, s.x)
    for k in range(n):
        _penalise(s, k)


def admm(w, bint single_root, path):
    """The iterates of ADMM from scores (n, n + 1, labels) into the rows of ``path`` (steps, n (n + 1) labels)."""
    cdef Py_ssize_t t, k, n = extent(w, "w", 0), L = extent(w, "w", 2), steps = extent(path, "path", 0)
    cdef const double* scores = <const double*> cube(w, "w", DOUBLE, n, n + 1, L)
    cdef double* out = <double*> matrix_out(path, "path", DOUBLE, steps, n * (n + 1) * L)
    cdef Desk s
    cdef Scratch memory = Scratch(_lay(&s, n, L, 0))
    _lay(&s, n, L, <size_t> memory.at)
    with nogil:
        memset(s.u, 0, n * s.size * sizeof(double))
        memset(s.dual, 0, n * s.size * sizeof(double))
        memset(s.z, 0, n * (n + 1) * (n + 1) * sizeof(double))
        for k in range(n):
            s.rho[k] = 1.0
        _rows(scores, single_root, &s, s.x)
        for t in range(steps):
            _admm_step(scores, single_root, &s)
            memcpy(out + t * s.size, s.x, s.size * sizeof(double))


def frank_wolfe_path(w, bint single_root, path):
    """The iterates of Frank-Wolfe with steps ``2 / (t + 2)``; arrays as those of :func:`admm`."""
    cdef Py_ssize_t t, d, a, n = extent(w, "w", 0), L = extent(w, "w", 2), steps = extent(path, "path", 0)
    cdef Py_ssize_t size = n * (n + 1) * L
    cdef const double* scores = <const double*> cube(w, "w", DOUBLE, n, n + 1, L)
    cdef double* out = <double*> matrix_out(path, "path", DOUBLE, steps, size)
    cdef size_t at = 0
    cdef Workspace work = new_workspace(n, &at)
    cdef Scratch memory = Scratch(at + (2 * size + 2 * n * (n + 1) + n) * sizeof(double))
    cdef double* x
    cdef double* slope
    cdef double* arc
    cdef Py_ssize_t* label
    cdef Py_ssize_t* heads
    cdef double gamma
    at = <size_t> memory.at
    work, x, slope, arc = new_workspace(n, &at), doubles(&at, size), doubles(&at, size), doubles(&at, n * (n + 1))
    label, heads = indices(&at, n * (n + 1)), indices(&at, n)
    with nogil:
        memset(x, 0, size * sizeof(double))
        for t in range(steps):
            for a in range(size):
                slope[a] = scores[a] - x[a]
            best_labelled(slope, n, L, single_root, arc, label, heads, &work)
            gamma = 2.0 / (t + 2.0)
            for a in range(size):
                x[a] *= 1.0 - gamma
            for d in range(n):
                a = d * (n + 1) + heads[d]
                x[a * L + label[a]] += gamma
            memcpy(out + t * size, x, size * sizeof(double))


cdef bint _line_search(
    const double* w, Py_ssize_t n, bint single_root, double* x, double* slope, Py_ssize_t* heads, const Workspace* work
) noexcept nogil:
    """A step of Frank-Wolfe as long as it pays; False where none does."""
    cdef Py_ssize_t a
    cdef double gap = 0.0, length = 0.0, move, step
    for a in range(n * (n + 1)):
        slope[a] = w[a] - x[a]
    best_tree(slope, n, single_root, heads, work)
    for a in range(n * (n + 1)):
        move = (1.0 if heads[a // (n + 1)] == a % (n + 1) else 0.0) - x[a]
        gap += slope[a] * move
        length += move * move
    if gap <= 0.0 or length == 0.0:
        return False
    step = min(gap / length, 1.0)
    for a in range(n * (n + 1)):
        x[a] += step * ((1.0 if heads[a // (n + 1)] == a % (n + 1) else 0.0) - x[a])
    return True


def frank_wolfe(w, Py_ssize_t steps, bint single_root, x):
    """Frank-Wolfe with line search from the best tree of scores (n, n + 1), finite, into ``x``."""
    cdef Py_ssize_t t, d, n = extent(w, "w", 0)
    cdef const double* scores = <const double*> matrix(w, "w", DOUBLE, n, n + 1)
    cdef double* out = <double*> matrix_out(x, "x", DOUBLE, n, n + 1)
    cdef size_t at = 0
    cdef Workspace work = new_workspace(n, &at)
    cdef Scratch memory = Scratch(at + (n * (n + 1) + n) * sizeof(double))
    cdef double* slope
    cdef Py_ssize_t* heads
    at = <size_t> memory.at
    work, slope, heads = new_workspace(n, &at), doubles(&at, n * (n + 1)), indices(&at, n)
    with nogil:
        memset(out, 0, n * (n + 1) * sizeof(double))
        best_tree(scores, n, single_root, heads, &work)
        for d in range(n):
            out[d * (n + 1) + heads[d]] = 1.0
        for t in range(steps):
            if not _line_search(scores, n, single_root, out, slope, heads, &work):
                break
