"""Euclidean projection onto the arborescence polytope, exact and certified.

The polytope is the product of one simplex a token (its heads) cut by ``x(arcs into S) >= 1`` for every set ``S`` of
tokens, and by equality for the set of all tokens where the root has one arc [edmonds1967]_. With a multiplier ``lam``
for each cut in use, each row is a projection onto the simplex,

    x_d = simplex(w_d + sum_{S containing d} lam_S [h not in S]),

and the dual is piecewise quadratic in ``lam``: semismooth Newton steps projected to ``lam >= 0``. Cuts come from the
contracted sets of the best tree, which are the duals of the linear programme, then from maximum flows at the
solution. The certificate is the Frank-Wolfe gap ``max_y <w - x, y> - <w - x, x>``, which bounds
``(|x - w|^2 - |x* - w|^2) / 2``; where it stays above the tolerance, Wolfe's method for the nearest point takes over.
"""

from libc.math cimport INFINITY, fabs
from libc.stdlib cimport free
from libc.string cimport memcpy, memset
from nashlearn.kernels.checks cimport DOUBLE, cube_out, extent, vector_out
from nashlearn.kernels.dense cimport cholesky, cholesky_solve
from nashlearn.kernels.scratch cimport Scratch, doubles, indices, marks
from nashlearn.kernels.simd cimport simd_max, simd_threshold
from nashlearn.kernels.tree_cuts cimport Flow, new_flow, separate
from nashlearn.kernels.tree_map cimport Workspace, best_tree, contracted_sets, new_workspace
from nashlearn.kernels.tree_nearest cimport Corral, Search, nearest_point, new_corral, new_search

cdef enum:
    _NEWTON = 60  # steps for one set of cuts
    _SHORTER = 40  # lengths tried for one step
    _ROUNDS = 40  # of cuts
cdef double _LOOSE = 1e-3


cdef Cuts new_cuts(Py_ssize_t n, size_t* at) noexcept nogil:
    cdef Cuts cuts
    cdef Py_ssize_t K = 3 * n + 8
    cuts.room = K
    cuts.members, cuts.free = marks(at, K * n), marks(at, K)
    cuts.lam, cuts.inner, cuts.grad = doubles(at, K), doubles(at, K * (n + 1)), doubles(at, K)
    cuts.trial, cuts.trial_grad, cuts.step = doubles(at, K), doubles(at, K), doubles(at, K)
    cuts.H, cuts.crossing, cuts.inside = doubles(at, K * K), doubles(at, K), indices(at, K)
    cuts.a, cuts.x, cuts.slope = doubles(at, n + 1), doubles(at, n * (n + 1)), doubles(at, n * (n + 1))
    return cuts


cdef double _lifted(
    const double* w, Py_ssize_t n, Py_ssize_t d, Py_ssize_t k, const Cuts* cuts, const double* lam
) noexcept nogil:
    """Row ``d`` of the scores into ``cuts.a``, less the prices of the cuts that an arc does not cross; their sum."""
    cdef Py_ssize_t c, h
    cdef double price, lift = 0.0
    cdef double* a = cuts.a
    cdef const double* within
    for h in range(n + 1):
        a[h] = w[d * (n + 1) + h]
    for c in range(k):
        if cuts.members[c * n + d] and lam[c] != 0.0:
            price, within = lam[c], cuts.inner + c * (n + 1)
            lift += price
            for h in range(n + 1):
                a[h] -= price * within[h]
    a[d + 1] = -INFINITY
    return lift


cdef double _primal(
    const double* w, Py_ssize_t n, Py_ssize_t k, const Cuts* cuts, const double* lam, double* grad
) noexcept nogil:
    """The dual's value and gradient at ``lam``; ``cuts.x`` becomes the rows' solution."""
    cdef Py_ssize_t c, d, h, i, near, m
    cdef double total = 0.0, lift, top, t, v, square, mass
    cdef const double* a = cuts.a
    cdef const double* within
    cdef double* out
    cdef Py_ssize_t* support = cuts.inside
    cdef double* close = cuts.crossing
    for c in range(k):
        total -= lam[c]
        grad[c] = -1.0
    for d in range(n):
        out = cuts.x + d * (n + 1)
        lift = _lifted(w, n, d, k, cuts, lam)
        top = simd_max(a + 1, n, a[0])
        near = 0  # entries below top - 1 are 0
        for h in range(n + 1):
            out[h] = 0.0
            if a[h] > top - 1.0:
                support[near], close[near] = h, a[h]
                near += 1
        t = top + simd_threshold(close, near, top, 1.0)
        square, mass, m = 0.0, 0.0, 0
        for i in range(near):
            v = close[i] - t
            if v > 0.0:
                out[support[i]] = v
                square += v * v
                mass += v
                support[m] = support[i]
                m += 1
        total += t * mass + 0.5 * square + lift
        for c in range(k):
            if cuts.members[c * n + d]:
                within = cuts.inner + c * (n + 1)
                for i in range(m):
                    grad[c] += out[support[i]] * (1.0 - within[support[i]])
    return total


cdef void _curvature(Py_ssize_t n, Py_ssize_t k, const Cuts* cuts) noexcept nogil:
    """The generalised Hessian: over rows, the covariance of "the arc crosses the cut" on the row's support."""
    cdef Py_ssize_t c, d, h, i, j, m, count, K = cuts.room
    cdef const unsigned char* members = cuts.members
    cdef double* H = cuts.H
    cdef double* crossing = cuts.crossing
    cdef Py_ssize_t* inside = cuts.inside
    cdef const double* x
    cdef double share
    for c in range(k):
        memset(H + c * K, 0, k * sizeof(double))
    for d in range(n):
        x, count = cuts.x + d * (n + 1), 0
        for h in range(n + 1):
            count += x[h] > 0.0
        if count < 2:
            continue
        memset(crossing, 0, k * sizeof(double))
        for h in range(n + 1):
            if x[h] > 0.0:
                m = 0
                for c in range(k):
                    if members[c * n + d] and (h == 0 or not members[c * n + h - 1]):
                        inside[m] = c
                        m += 1
                        crossing[c] += 1.0
                for i in range(m):
                    for j in range(i + 1):
                        H[inside[i] * K + inside[j]] += 1.0
        for i in range(k):
            if crossing[i] > 0.0:
                share = crossing[i] / count
                for j in range(i + 1):
                    H[i * K + j] -= share * crossing[j]


cdef double _optimality(Py_ssize_t k, const Cuts* cuts, const double* lam, const double* grad) noexcept nogil:
    """The largest violation of the dual's optimality conditions."""
    cdef Py_ssize_t c
    cdef double worst = 0.0
    for c in range(k):
        worst = max(worst, fabs(grad[c]) if cuts.free[c] or lam[c] > 0.0 else -grad[c])
    return worst


cdef void _direction(Py_ssize_t k, const Cuts* cuts, double ridge, double longest) noexcept nogil:
    """The projected Newton step into ``cuts.step``, by Cholesky on the multipliers that may move."""
    cdef Py_ssize_t c, i, j, m = 0, K = cuts.room
    cdef double* H = cuts.H
    cdef double* step = cuts.step
    cdef double* solution = cuts.crossing
    cdef Py_ssize_t* index = cuts.inside
    cdef double size = 0.0
    for c in range(k):
        step[c] = 0.0
        if cuts.free[c] or cuts.lam[c] > 0.0 or cuts.grad[c] < 0.0:
            index[m], solution[m] = c, -cuts.grad[c]
            for j in range(m + 1):
                H[m * K + j] = H[c * K + index[j]]
            H[m * K + m] += ridge
            m += 1
    m = cholesky(H, K, H, K, 0, m, 0.0)  # a multiplier that rounding makes dependent on those before it waits
    cholesky_solve(H, K, m, solution)
    for i in range(m):
        step[index[i]] = solution[i]
    for c in range(k):
        size = max(size, fabs(step[c]))
    if size > longest:
        for c in range(k):
            step[c] *= longest / size


cdef bint _shorten(
    const double* w, Py_ssize_t n, Py_ssize_t k, const Cuts* cuts, double* value, double* worst
) noexcept nogil:
    """Try lengths of the step until one helps, which is in ``cuts.trial`` then; False where none does."""
    cdef double* trial = cuts.trial
    cdef double t = 1.0, slope, new, left, curve
    cdef Py_ssize_t c, turn
    for turn in range(_SHORTER):
        slope = 0.0
        for c in range(k):
            trial[c] = cuts.lam[c] + t * cuts.step[c]
            if trial[c] < 0.0 and not cuts.free[c]:
                trial[c] = 0.0
            slope += cuts.grad[c] * (trial[c] - cuts.lam[c])
        new = _primal(w, n, k, cuts, trial, cuts.trial_grad)
        left = _optimality(k, cuts, trial, cuts.trial_grad)
        if new <= value[0] + 1e-4 * slope or left <= 0.5 * worst[0]:
            value[0], worst[0] = new, left
            return True
        curve = 2.0 * (new - value[0] - slope)
        t *= min(0.5, max(0.1, -slope / curve)) if curve > 0.0 else 0.5
    return False


cdef double _newton(
    const double* w, Py_ssize_t n, Py_ssize_t k, const Cuts* cuts, double spread, double tol
) noexcept nogil:
    """Multipliers of ``k`` cuts; what is left of the optimality conditions."""
    cdef Py_ssize_t c, j, turn
    cdef double value, worst
    for c in range(k):
        cuts.inner[c * (n + 1)] = 0.0
        for j in range(n):
            cuts.inner[c * (n + 1) + j + 1] = 1.0 if cuts.members[c * n + j] else 0.0
    value = _primal(w, n, k, cuts, cuts.lam, cuts.grad)
    worst = _optimality(k, cuts, cuts.lam, cuts.grad)
    for turn in range(_NEWTON):
        if worst <= tol:
            break
        _curvature(n, k, cuts)
        _direction(k, cuts, 1e-12 + 1e-3 * min(worst, 0.01), 2.0 * spread + 1.0)
        if not _shorten(w, n, k, cuts, &value, &worst):
            _primal(w, n, k, cuts, cuts.lam, cuts.grad)
            break
        memcpy(cuts.lam, cuts.trial, k * sizeof(double))
        memcpy(cuts.grad, cuts.trial_grad, k * sizeof(double))
    return worst


cdef Py_ssize_t _start(
    Py_ssize_t n, Py_ssize_t count, bint single_root, const Workspace* work, const Cuts* cuts
) noexcept nogil:
    """The contracted sets of the best tree with their prices; with one root the set of all tokens comes first."""
    cdef Py_ssize_t c, d, new, k = 0
    cdef bint everything
    if single_root:
        memset(cuts.members, 1, n)
        cuts.free[0], cuts.lam[0], k = True, 0.0, 1
    new = k + contracted_sets(n, count, work, cuts.members + k * n, cuts.lam + k)
    for c in range(k, new):
        everything = single_root
        for d in range(n):
            everything = everything and cuts.members[c * n + d]
        if everything:
            cuts.lam[0] = cuts.lam[c]
        else:
            _keep(n, c, k, cuts)
            cuts.lam[k], cuts.free[k] = max(cuts.lam[k], 0.0), False
            k += 1
    return k


cdef void _keep(Py_ssize_t n, Py_ssize_t c, Py_ssize_t k, const Cuts* cuts) noexcept nogil:
    """Move cut ``c`` to place ``k``."""
    if k != c:
        memcpy(cuts.members + k * n, cuts.members + c * n, n)
        cuts.lam[k], cuts.free[k] = cuts.lam[c], cuts.free[c]


cdef Py_ssize_t _forget_idle(Py_ssize_t n, Py_ssize_t k, const Cuts* cuts) noexcept nogil:
    """Drop the cuts without a multiplier; how many are left."""
    cdef Py_ssize_t c, kept = 0
    for c in range(k):
        if cuts.free[c] or cuts.lam[c] > 0.0:
            _keep(n, c, kept, cuts)
            kept += 1
    return kept


cdef double _level(double* w, Py_ssize_t n) noexcept nogil:
    """Shift each row to the largest score 0; the largest spread of a row, -1 where one has no arc left."""
    cdef Py_ssize_t d, h
    cdef double top, low, spread = 0.0
    cdef double* row
    for d in range(n):
        row, top, low = w + d * (n + 1), -INFINITY, INFINITY
        for h in range(n + 1):
            if h != d + 1 and row[h] > -INFINITY:
                top, low = max(top, row[h]), min(low, row[h])
        if top == -INFINITY:
            return -1.0
        spread = max(spread, top - low)
        for h in range(n + 1):
            row[h] -= top
        row[d + 1] = -INFINITY
    return spread


cdef Py_ssize_t price_cuts(
    double* w,
    Py_ssize_t n,
    bint single_root,
    bint loose,
    Py_ssize_t* heads,
    const Workspace* work,
    const Cuts* cuts,
    const Flow* flow,
    double* exact,
) noexcept nogil:
    cdef double spread = _level(w, n), goal = _LOOSE, tol  # cuts plainly violated need no exact multipliers
    cdef Py_ssize_t c, k, new, turn, count = 0
    if spread >= 0.0:
        count = best_tree(w, n, single_root, heads, work)
    if count == 0:
        return -1
    exact[0] = 1e-14 * (1.0 + spread) * n
    k = _start(n, count, single_root, work, cuts)
    for turn in range(_ROUNDS):
        if _newton(w, n, k, cuts, spread, goal) > 10.0 * goal:
            break
        k = _forget_idle(n, k, cuts)
        tol = max(1e-12 * n * (1.0 + spread), 10.0 * goal)
        new = k + separate(cuts.x, n, cuts.members + k * n, cuts.room - k, tol, flow)
        if new == k:
            if loose or goal == exact[0]:
                break
            goal = exact[0]
        for c in range(k, new):
            cuts.lam[c], cuts.free[c] = 0.0, False
        k = new
    return k


cdef double _frank_wolfe_gap(
    const double* w, const double* x, Py_ssize_t n, bint single_root, double* slope, Py_ssize_t* heads,
    const Workspace* work,
) noexcept nogil:
    """``max_y <w - x, y> - <w - x, x>`` over trees; arcs of score ``-inf`` do not count. ``slope`` is scratch."""
    cdef Py_ssize_t a, d
    cdef double inside = 0.0, best = 0.0
    for a in range(n * (n + 1)):
        slope[a] = w[a] - x[a]
        if x[a] != 0.0:
            inside += slope[a] * x[a]
    best_tree(slope, n, single_root, heads, work)
    for d in range(n):
        best += slope[d * (n + 1) + heads[d]]
    return best - inside


cdef struct Desk:  # all that projections of one size work on
    Workspace work
    Cuts cuts
    Flow flow
    Search search
    Py_ssize_t* heads


cdef size_t _lay(Desk* desk, Py_ssize_t n, size_t at) noexcept nogil:
    desk.work, desk.cuts, desk.flow = new_workspace(n, &at), new_cuts(n, &at), new_flow(n, &at)
    desk.search, desk.heads = new_search(n, 1, &at), indices(&at, n)
    return at


cdef double _project(double* w, Py_ssize_t n, bint single_root, double* x, Desk* desk, Corral* corral) noexcept nogil:
    """Project ``w`` (n, n + 1), finite or ``-inf`` and changed, into ``x``; the certified gap, -1 without a tree."""
    cdef double exact = 0.0, gap
    if price_cuts(w, n, single_root, False, desk.heads, &desk.work, &desk.cuts, &desk.flow, &exact) < 0:
        return -1.0
    memcpy(x, desk.cuts.x, n * (n + 1) * sizeof(double))
    gap = _frank_wolfe_gap(w, x, n, single_root, desk.cuts.slope, desk.heads, &desk.work)
    if not fabs(gap) <= 10.0 * exact:
        gap = nearest_point(w, n, 1, single_root, x, desk.heads, &desk.work, &desk.search, corral)
    return max(gap, 0.0)


def project_trees(w, bint single_root, x, gap):
    """Project a batch ``w`` (b, n, n + 1), finite or ``-inf`` and changed, into ``x``; certified gaps into ``gap`` (b).

    A gap of -1 says that there is no tree, and nothing of the point then. Cost: some ten O(n^2) where few cuts bind.
    """
    cdef Py_ssize_t i, b = extent(w, "w", 0), n = extent(w, "w", 1), size = n * (n + 1)
    cdef double* scores = <double*> cube_out(w, "w", DOUBLE, b, n, n + 1)
    cdef double* points = <double*> cube_out(x, "x", DOUBLE, b, n, n + 1)
    cdef double* gaps = <double*> vector_out(gap, "gap", DOUBLE, b)
    cdef Desk desk
    cdef Scratch memory = Scratch(_lay(&desk, n, 0))
    cdef Corral corral = new_corral(n)
    _lay(&desk, n, <size_t> memory.at)
    with nogil:
        for i in range(b):
            gaps[i] = _project(scores + i * size, n, single_root, points + i * size, &desk, &corral)
        free(corral.memory)
    if corral.failed:
        raise MemoryError("there is no room for the trees that a projection mixes")
