"""Bilinear games over rows of simplices cut by further constraints, by an interior point method.

Both players choose ``x >= 0`` over the same entries: each row of entries sums to 1, and each constraint ``k``
asks ``sum_{e in k} x_e = 1`` or ``>= 1`` (the columns of a matching, the cuts of a tree). The game is

    max_q min_p <r, q> + <c, p> - <p, W q> - mu_q/2 |q|^2 + mu_p/2 |p|^2,    W >= 0 diagonal.

Its optimality conditions are a monotone complementarity problem, followed along its central path with
Mehrotra's predictor and corrector [mehrotra1992]_. Eliminating slacks leaves a 2 x 2 block for each entry (its ``p``
and its ``q``), eliminating entries a 2 x 2 block for each row, eliminating rows one dense system for the constraints:
an iteration costs O(rows * constraints^2 + constraints^3).
"""

from libc.math cimport INFINITY, fabs
from libc.string cimport memcpy, memset
from nashlearn.kernels.checks cimport DOUBLE, INDEX, MARK, extent, matrix_out, rising, vector, within
from nashlearn.kernels.interior_newton cimport Point, Saddle, System, direction, factor, new_point, new_system, sums
from nashlearn.kernels.scratch cimport Scratch, doubles

cdef enum:
    _STALLS = 8  # iterations without progress after which rounding is taken to have won
    _PATIENCE = 12  # iterations that may pass before the residual is halved: with more the corrector runs in circles

cdef double _CENTRED = 0.5  # complementarity that a careful step aims at, relative to what there is,
cdef double _INSIDE = 0.7  # and how much of the way to the boundary it goes


cdef struct Path:  # where the method is, and what it works with
    Point at, lack, step
    System system
    double* size  # (R) entries of each row


cdef Path _laid_out(Py_ssize_t m, Py_ssize_t R, Py_ssize_t K, size_t* at) noexcept nogil:
    cdef Path c
    c.at, c.lack, c.step = new_point(m, R, K, at), new_point(m, R, K, at), new_point(m, R, K, at)
    c.system = new_system(m, R, K, at)
    c.size = doubles(at, R)
    return c


cdef size_t saddle_room(Py_ssize_t m, Py_ssize_t R, Py_ssize_t K) noexcept nogil:
    cdef size_t at = 0
    _laid_out(m, R, K, &at)
    return at


cdef void _reduced_costs(const Saddle* game, const Point* at, double* out) noexcept nogil:
    """The gradient of each entry for either player, less the potentials of its row and constraints."""
    cdef Py_ssize_t e, i, t, m = game.m, R = game.R, K = game.K
    cdef double p, q, w, price_p, price_q
    for e in range(m):
        p, q, w = at.x[e], at.x[m + e], game.weight[e]
        price_p = price_q = 0.0
        i = game.row[e]
        if i >= 0:
            price_p, price_q = at.y[i], at.y[R + i]
        for t in range(game.first[e], game.first[e + 1]):
            price_p += at.lam[game.member[t]]
            price_q += at.lam[K + game.member[t]]
        out[e] = game.mu_p * p - w * q + game.cost[e] - price_p
        out[m + e] = game.mu_q * q + w * p - game.reward[e] - price_q


cdef void _start(const Saddle* game, Path* path, bint warm) noexcept nogil:
    """An interior point: rows spread evenly, or the strategies and potentials at hand moved off the boundary."""
    cdef Point* at = &path.at
    cdef double margin = 0.05 if warm else 1.0, least = 0.05 if warm else 0.3, even, old
    cdef Py_ssize_t e, i, k, player, m = game.m, R = game.R, K = game.K
    memset(path.size, 0, R * sizeof(double))
    for e in range(m):
        if game.row[e] >= 0:
            path.size[game.row[e]] += 1.0
    for player in range(2):
        for e in range(m):
            even = 1.0 / path.size[game.row[e]] if game.row[e] >= 0 else 1.0 / (1.0 + <double> R)
            old = at.x[player * m + e] if warm else 0.0
            at.x[player * m + e] = max((1.0 - margin) * old + margin * even, 1e-4 * even)
    for k in range(2 * K):
        if not game.equality[k % K]:
            at.lam[k] = max(at.lam[k], margin)
            at.s[k] = margin
    _reduced_costs(game, at, at.z)
    if not warm:
        for i in range(2 * R):
            at.y[i] = INFINITY
        for player in range(2):
            for e in range(m):
                if game.row[e] >= 0:
                    i = player * R + game.row[e]
                    at.y[i] = min(at.y[i], at.z[player * m + e] - least)
        _reduced_costs(game, at, at.z)
    for e in range(2 * m):
        at.z[e] = max(at.z[e], least)


cdef double _residuals(const Saddle* game, const Point* at, Point* out, double* dual, double* primal) noexcept nogil:
    """Stationarity, rows and constraints into ``out``; the largest of each kind, and the complementarity returned."""
    cdef double far = 0.0, miss = 0.0, total = 0.0
    cdef Py_ssize_t e, i, k, player, m = game.m, R = game.R, K = game.K
    _reduced_costs(game, at, out.x)
    sums(game, at.x, out.y, out.lam)
    for player in range(2):
        for e in range(player * m, player * m + m):
            out.x[e] -= at.z[e]
            far = max(far, fabs(out.x[e]))
            total += at.x[e] * at.z[e]
        for i in range(player * R, player * R + R):
            out.y[i] -= 1.0
            miss = max(miss, fabs(out.y[i]))
        for k in range(player * K, player * K + K):
            out.lam[k] -= 1.0
            if not game.equality[k % K]:
                out.lam[k] -= at.s[k]
                total += at.lam[k] * at.s[k]
            miss = max(miss, fabs(out.lam[k]))
    dual[0], primal[0] = far, miss
    return total


cdef void _target(const Saddle* game, Path* path, double centre, bint second_order) noexcept nogil:
    """Complementarity that a step should remove: all of it but ``centre``, and what the predictor adds."""
    cdef Point* at = &path.at
    cdef Point* step = &path.step
    cdef Py_ssize_t e, k
    for e in range(2 * game.m):
        path.lack.z[e] = centre - at.x[e] * at.z[e] - (step.x[e] * step.z[e] if second_order else 0.0)
    for k in range(2 * game.K):
        if not game.equality[k % game.K]:
            path.lack.s[k] = centre - at.lam[k] * at.s[k] - (step.lam[k] * step.s[k] if second_order else 0.0)


cdef double _longest(const Saddle* game, const Point* at, const Point* step) noexcept nogil:
    """The largest step, up to 2, that keeps everything positive."""
    cdef double length = 2.0
    cdef Py_ssize_t e, k
    for e in range(2 * game.m):
        if step.x[e] < 0.0:
            length = min(length, -at.x[e] / step.x[e])
        if step.z[e] < 0.0:
            length = min(length, -at.z[e] / step.z[e])
    for k in range(2 * game.K):
        if not game.equality[k % game.K]:
            if step.lam[k] < 0.0:
                length = min(length, -at.lam[k] / step.lam[k])
            if step.s[k] < 0.0:
                length = min(length, -at.s[k] / step.s[k])
    return length


cdef double _complementarity_after(
    const Saddle* game, const Point* at, const Point* step, double length
) noexcept nogil:
    """Total complementarity after a step."""
    cdef double total = 0.0
    cdef Py_ssize_t e, k, player, m = game.m, K = game.K
    for player in range(2):
        for e in range(player * m, player * m + m):
            total += (at.x[e] + length * step.x[e]) * (at.z[e] + length * step.z[e])
        for k in range(player * K, player * K + K):
            if not game.equality[k % K]:
                total += (at.lam[k] + length * step.lam[k]) * (at.s[k] + length * step.s[k])
    return total


cdef void _move(const Saddle* game, Point* at, const Point* step, double length) noexcept nogil:
    cdef Py_ssize_t e
    for e in range(2 * game.m):
        at.x[e] += length * step.x[e]
        at.z[e] += length * step.z[e]
    for e in range(2 * game.R):
        at.y[e] += length * step.y[e]
    for e in range(2 * game.K):
        at.lam[e] += length * step.lam[e]
        at.s[e] += length * step.s[e]


cdef void _step(const Saddle* game, Path* path, double worst, double last, double total, double pairs) noexcept nogil:
    """Predict, correct and move."""
    cdef double length, sigma
    _target(game, path, 0.0, False)
    direction(game, &path.at, &path.lack, &path.system, &path.step)
    length = min(1.0, _longest(game, &path.at, &path.step))
    sigma = _complementarity_after(game, &path.at, &path.step, length) / total
    sigma = sigma * sigma * sigma
    if worst > last:
        sigma = max(sigma, 0.1)
    _target(game, path, sigma * total / pairs, True)
    direction(game, &path.at, &path.lack, &path.system, &path.step)
    # Almost to the boundary, the closer the nearer the end: 0.99 throughout would make convergence linear.
    length = min(1.0, max(0.99, 1.0 - worst) * _longest(game, &path.at, &path.step))
    _move(game, &path.at, &path.step, length)


cdef void _careful_step(const Saddle* game, Path* path, double total, double pairs) noexcept nogil:
    """Move towards the central path: Mehrotra's steps may leave it so far that they go round in circles."""
    _target(game, path, _CENTRED * total / pairs, False)
    direction(game, &path.at, &path.lack, &path.system, &path.step)
    _move(game, &path.at, &path.step, min(1.0, _INSIDE * _longest(game, &path.at, &path.step)))


cdef double _follow(
    const Saddle* game, double tol, Py_ssize_t max_iter, bint warm, double* x, double* y, double* lam, void* room
) noexcept nogil:
    """Follow the central path from one start."""
    cdef size_t address = <size_t> room
    cdef Py_ssize_t e, iteration, stalls = 0, slow = 0, m = game.m, R = game.R, K = game.K
    cdef Path path = _laid_out(m, R, K, &address)
    cdef Point* at = &path.at
    cdef double pairs = 2.0 * m, scale = 1.0, best = INFINITY, last = INFINITY, halved = INFINITY
    cdef double worst, total, dual, primal
    memset(room, 0, <size_t> path.system.inverse - <size_t> room)  # the three points
    if warm:
        memcpy(at.x, x, 2 * m * sizeof(double))
        memcpy(at.y, y, 2 * R * sizeof(double))
        memcpy(at.lam, lam, 2 * K * sizeof(double))
    _start(game, &path, warm)
    for e in range(K):
        pairs += 0.0 if game.equality[e] else 2.0
    for e in range(m):
        scale = max(scale, fabs(game.reward[e]), fabs(game.cost[e]))
    for iteration in range(max_iter):
        total = _residuals(game, at, &path.lack, &dual, &primal)
        worst = max(dual, total) / scale
        worst = max(worst, primal) if total == total else INFINITY
        if worst < best:
            best, stalls = worst, 0
            memcpy(x, at.x, 2 * m * sizeof(double))
            memcpy(y, at.y, 2 * R * sizeof(double))
            memcpy(lam, at.lam, 2 * K * sizeof(double))
        else:
            stalls += 1
        if best <= tol or stalls > _STALLS or not worst < INFINITY or not factor(game, at, &path.system):
            break
        slow += 1
        if best <= 0.5 * halved:
            halved, slow = best, 0
        if slow < _PATIENCE:
            _step(game, &path, worst, last, total, pairs)
        else:
            _careful_step(game, &path, total, pairs)
        last = worst
    return best


cdef double saddle_point(
    const Saddle* game, double tol, Py_ssize_t max_iter, bint warm, double* x, double* y, double* lam, void* room
) noexcept nogil:
    cdef double residual = _follow(game, tol, max_iter, warm, x, y, lam, room)
    if warm and not residual <= tol:  # a start that leads nowhere, as one in fifty does, is given up for a cold one
        residual = _follow(game, tol, max_iter, False, x, y, lam, room)
    return residual


def solve_saddle(
    reward, cost, weight, double mu_p, double mu_q, row, Py_ssize_t n_rows, first, member, equality,
    double tol, Py_ssize_t max_iter, bint warm, x, y, lam
):
    """Write both players' strategies and potentials; answer how far they are from optimal.

    Entries that no point of the polytope uses, and constraints that the others imply, must be left out: the polytope
    needs an interior.

    Parameters
    ----------
    reward, cost, weight : ndarrays (m,)
        ``r``, ``c`` and the diagonal of ``W``.
    mu_p, mu_q : float
        Quadratic smoothing of either player; not negative.
    row : intp ndarray (m,)
        The row of each entry, -1 for an entry in none.
    n_rows : int
        Number of rows ``R``.
    first, member : intp ndarrays (m + 1,), (first[m],)
        Entry ``e`` occurs in the constraints ``member[first[e] : first[e + 1]]``.
    equality : bool ndarray (K,)
        Whether a constraint asks for 1, or for at least 1.
    tol : float
        Ends where the total complementarity, which bounds the gap of feasible strategies, and all residuals are
        below ``tol`` times the largest of 1, ``|reward|`` and ``|cost|``.
    max_iter : int
        Largest number of iterations.
    warm : bool
        Start from ``x``, ``y`` and ``lam``, moved into the interior; a new constraint starts at 0.
    x : ndarray (2, m)
        ``p`` and ``q``.
    y, lam : ndarrays (2, R), (2, K)
        Potentials of rows and constraints: ``mu_p p - W q + c - y_row - sum lam >= 0``, with equality where
        ``p > 0``, and likewise ``mu_q q + W p - r``.

    Returns
    -------
    residual : float
        What ``tol`` bounds, at the best iterate, which is the one returned: above ``tol``, the answer is not
        converged, and ``inf`` says that there is none.
    """
    cdef Saddle game
    cdef Py_ssize_t e
    cdef double residual
    if n_rows < 0:
        raise ValueError(f"n_rows must not be negative; got {n_rows}")
    game.m, game.R, game.K = extent(row, "row", 0), n_rows, extent(equality, "equality", 0)
    game.mu_p, game.mu_q = mu_p, mu_q
    game.reward = <const double*> vector(reward, "reward", DOUBLE, game.m)
    game.cost = <const double*> vector(cost, "cost", DOUBLE, game.m)
    game.weight = <const double*> vector(weight, "weight", DOUBLE, game.m)
    game.row = <const Py_ssize_t*> vector(row, "row", INDEX, game.m)
    game.first = <const Py_ssize_t*> vector(first, "first", INDEX, game.m + 1)
    game.member = <const Py_ssize_t*> vector(member, "member", INDEX, -1)
    game.equality = <const unsigned char*> vector(equality, "equality", MARK, game.K)
    cdef double* x_at = <double*> matrix_out(x, "x", DOUBLE, 2, game.m)
    cdef double* y_at = <double*> matrix_out(y, "y", DOUBLE, 2, n_rows)
    cdef double* lam_at = <double*> matrix_out(lam, "lam", DOUBLE, 2, game.K)
    rising(game.first, game.m, extent(member, "member", 0), "first")
    within(game.member, extent(member, "member", 0), game.K, "member")
    for e in range(game.m):
        if not -1 <= game.row[e] < n_rows:
            raise ValueError(f"row must hold rows 0..{n_rows - 1}, or -1 for none; got {game.row[e]}")
    if not (mu_p >= 0.0 and mu_q >= 0.0):
        raise ValueError(f"mu_p and mu_q must not be negative; got {mu_p} and {mu_q}")
    cdef Scratch room = Scratch(saddle_room(game.m, game.R, game.K))
    with nogil:
        residual = saddle_point(&game, tol, max_iter, warm, x_at, y_at, lam_at, room.at)
    return residual
