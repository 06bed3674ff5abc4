"""Games between matchings, one after another.

A game is a matrix of scores. Its rows and columns sum to 1; in a partial matching the last column (leaving) and the
last row (entering) need not, and their common corner is void. Smoothing takes ``mu/2 (|q|^2 - <1, q>)`` off what the
adversary gets: ``mu/2`` joins the scores, and the square is the solver's.
"""

from libc.math cimport INFINITY, NAN, fabs, isnan
from libc.string cimport memset
from nashlearn.kernels.admissible cimport admissible_pairs, admissible_room
from nashlearn.kernels.assignment cimport (
    Sides,
    assignment_room,
    best_matching,
    checked_sides,
    matching_score,
)
from nashlearn.kernels.checks cimport DOUBLE, cube, cube_out, extent, matrix, vector_out
from nashlearn.kernels.interior cimport saddle_point, saddle_room
from nashlearn.kernels.interior_newton cimport Saddle
from nashlearn.kernels.projected_start cimport projected_start, start_room
from nashlearn.kernels.scratch cimport Scratch, doubles, indices, marks

cdef enum:
    _MAX_ITER = 100


cdef struct Room:
    double* theta  # (N1, N2), as the other two
    double* relative
    double* work
    unsigned char* keep  # (N1, N2)
    unsigned char* free  # (columns)
    Py_ssize_t* number  # (columns)
    Py_ssize_t* column  # (rows)
    double* u
    double* v
    double* reward  # (N1 * N2) one for each entry of the game, as the other two
    double* cost
    double* weight
    Py_ssize_t* row
    Py_ssize_t* first
    Py_ssize_t* member
    unsigned char* equality
    double* x
    double* y
    double* lam
    void* rest  # for one solver at a time


cdef struct Found:
    double value, entropy, risk, gap


cdef struct Task:  # what all games of a call have in common
    Sides sides
    const double* weights
    double least, most  # of the weights
    double smoothing, tol


cdef Room _laid_out(const Sides* sides, size_t* at) noexcept nogil:
    cdef Room c
    cdef Py_ssize_t m = sides.N1 * sides.N2, rows = sides.rows, columns = sides.columns
    c.theta, c.relative, c.work = doubles(at, m), doubles(at, m), doubles(at, m)
    c.keep, c.free, c.equality = marks(at, m), marks(at, columns), marks(at, columns)
    c.number, c.column = indices(at, columns), indices(at, rows)
    c.u, c.v = doubles(at, rows), doubles(at, columns)
    c.reward, c.cost, c.weight = doubles(at, m), doubles(at, m), doubles(at, m)
    c.row, c.first, c.member = indices(at, m), indices(at, m + 1), indices(at, m)
    c.x, c.y, c.lam = doubles(at, 2 * m), doubles(at, 2 * rows), doubles(at, 2 * columns)
    c.rest = <void*> at[0]
    return c


cdef size_t _room_size(const Sides* sides) noexcept nogil:
    cdef size_t at = 0, rest = assignment_room(sides)
    _laid_out(sides, &at)
    rest = max(rest, admissible_room(sides), saddle_room(sides.N1 * sides.N2, sides.rows, sides.columns))
    return at + max(rest, start_room(sides.rows) if sides.rows == sides.N1 else <size_t> 0)


cdef void _shift(const Sides* sides, const double* scores, Room* c) noexcept nogil:
    """Scores less the potentials of the best matching: 0 on its pairs, whatever rounding says, and never positive."""
    cdef Py_ssize_t i, j, e = 0
    cdef double rounding = 1e-15 * (sides.rows + sides.columns), of_row, of_column, below
    for i in range(sides.N1):
        of_row = c.u[i] if i < sides.rows else 0.0
        for j in range(sides.N2):
            of_column = c.v[j] if j < sides.columns else 0.0
            below = scores[e] - of_row - of_column
            if below > -rounding * (fabs(scores[e]) + fabs(of_row) + fabs(of_column)) and scores[e] > -INFINITY:
                below = 0.0
            c.relative[e] = below
            e += 1


cdef Py_ssize_t _keep_pairs(const Sides* sides, const double* scores, Room* c) noexcept nogil:
    """Mark the pairs that some matching uses and the columns that are not redundant; how many pairs are forbidden."""
    cdef Py_ssize_t e, m = sides.N1 * sides.N2, forbidden = 0, corner = m - 1 if sides.rows < sides.N1 else -1
    for e in range(m):
        c.keep[e] = scores[e] > -INFINITY and e != corner
        forbidden += not (c.keep[e] or e == corner)
    memset(c.free, 1, sides.columns)
    if forbidden:
        admissible_pairs(sides, scores, c.column, c.keep, c.free, c.rest)
    elif sides.rows == sides.N1 and sides.columns:
        c.free[sides.columns - 1] = False
    return forbidden


cdef Saddle _saddle(const Task* task, double floor, Room* c) noexcept nogil:
    """The game over the pairs that are kept and the columns that are free."""
    cdef Saddle game
    cdef Py_ssize_t i, j, at, e = 0, filled = 0, K = 0
    for j in range(task.sides.columns):
        c.number[j] = K
        K += c.free[j]
    memset(c.equality, 1, K)
    c.first[0] = 0
    for i in range(task.sides.N1):
        for j in range(task.sides.N2):
            at = i * task.sides.N2 + j
            if not c.keep[at]:
                continue
            c.reward[e], c.weight[e] = max(c.relative[at], floor) + task.weights[at], task.weights[at]
            c.cost[e] = 0.0
            c.row[e] = i if i < task.sides.rows else -1
            if j < task.sides.columns and c.free[j]:
                c.member[filled] = c.number[j]
                filled += 1
            e += 1
            c.first[e] = filled
    game.m, game.R, game.K = e, task.sides.rows, K
    game.reward, game.cost, game.weight = c.reward, c.cost, c.weight
    game.mu_p, game.mu_q = 0.0, task.smoothing
    game.row, game.first, game.member, game.equality = c.row, c.first, c.member, c.equality
    return game


cdef Found _certificate(
    const Task* task, const double* relative, const double* p, const double* q, Room* c
) noexcept nogil:
    """What ``q`` secures, its entropy and risk ``min_p <p, L q>``, and how much more ``p`` may lose: two matchings.

    NaN where either of them cannot be found.
    """
    cdef Found found
    cdef Py_ssize_t e, m = task.sides.N1 * task.sides.N2
    cdef double square = 0.0, spread = 0.0, secured = 0.0, risk = 0.0, reached, mu = task.smoothing
    cdef const double* weights = task.weights
    for e in range(m):
        if q[e] > 0.0:
            square += q[e] * q[e]
            spread += q[e] * (1.0 - q[e])
            secured += relative[e] * q[e]
            risk += weights[e] * q[e]
        c.work[e] = weights[e] * q[e] if relative[e] > -INFINITY else -INFINITY
    found.value = found.entropy = found.risk = found.gap = NAN
    if not best_matching(&task.sides, c.work, c.column, c.u, c.v, c.rest):
        return found
    risk -= matching_score(&task.sides, c.work, c.column, c.rest)
    secured += risk - 0.5 * mu * square
    for e in range(m):
        c.work[e] = relative[e] + weights[e] * (1.0 - p[e]) - mu * q[e]
    if not best_matching(&task.sides, c.work, c.column, c.u, c.v, c.rest):
        return found
    reached = matching_score(&task.sides, c.work, c.column, c.rest) + 0.5 * mu * square
    found.value, found.entropy, found.risk = secured, risk + 0.5 * mu * spread, risk
    found.gap = max(reached - secured, 0.0)
    return found


cdef void _play(const Task* task, bint guessed, double floor, double* q, double* p, Room* c) noexcept nogil:
    """Strategies of the game that is laid out, from the projection of its scores where it may be ``guessed``."""
    cdef Saddle game = _saddle(task, floor, c)
    cdef Py_ssize_t at, e = 0
    cdef bint exact = guessed and projected_start(task.sides.rows, c.relative, c.x, c.y, c.lam, c.rest)
    if not guessed:
        memset(c.x, 0, 2 * game.m * sizeof(double))  # what a method that finds nothing leaves
    if not exact or task.smoothing > 0.0:
        saddle_point(&game, 0.1 * task.tol, _MAX_ITER, guessed, c.x, c.y, c.lam, c.rest)
    for at in range(task.sides.N1 * task.sides.N2):
        q[at] = p[at] = 0.0
        if c.keep[at]:
            p[at] = c.x[e]
            if c.relative[at] > floor:
                q[at] = c.x[game.m + e]
            e += 1


cdef Found _solve(const Task* task, const double* scores, double* q, double* p, Room* c) noexcept nogil:
    """The game of ``scores``; a gap of inf says that nothing matches, and then nothing is written."""
    cdef Found found
    cdef const Sides* sides = &task.sides
    cdef double worth, floor
    cdef Py_ssize_t forbidden
    if not best_matching(sides, scores, c.column, c.u, c.v, c.rest):
        found.value = found.entropy = found.risk = 0.0
        found.gap = INFINITY
        return found
    worth = matching_score(sides, scores, c.column, c.rest)
    # A matching that is further than this from the best is not worth the adversary's while, however much further.
    floor = -1.0 - (task.smoothing + task.most) * (sides.rows + sides.columns)
    _shift(sides, scores, c)
    forbidden = _keep_pairs(sides, scores, c)
    _play(
        task, not forbidden and 0 < sides.rows == sides.N1 and task.least == task.most == 1.0, floor, q, p, c
    )
    found = _certificate(task, c.relative, p, q, c)
    found.value += worth
    return found


cdef bint _any_nan(const double* x, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        if isnan(x[i]):
            return True
    return False


cdef int _take(object scores, object weights, bint partial, double smoothing, double tol, Task* task) except -1:
    """Check what all games of a call have in common."""
    cdef Py_ssize_t e
    checked_sides(scores, partial, &task.sides)
    task.weights = <const double*> matrix(weights, "weights", DOUBLE, task.sides.N1, task.sides.N2)
    if not smoothing >= 0.0:
        raise ValueError(f"smoothing must not be negative; got {smoothing}")
    task.smoothing, task.tol, task.least, task.most = smoothing, tol, INFINITY, -INFINITY
    for e in range(task.sides.N1 * task.sides.N2):
        task.least, task.most = min(task.least, task.weights[e]), max(task.most, task.weights[e])
    return 0


def solve_matchings(
    scores, weights, bint partial, double smoothing, double tol, Py_ssize_t start, Py_ssize_t stop,
    value, q, p, gap, entropy, risk
):
    """Equilibria of the matrices ``start`` to ``stop`` of ``scores`` (b, N1, N2); ``weights`` (N1, N2) are all games'.

    A gap of ``inf`` says that no matching is allowed; a matrix with NaN gives NaN. Cost: ten to thirty iterations of
    O(n^3) a game.
    """
    cdef Task task
    _take(scores, weights, partial, smoothing, tol, &task)
    cdef Py_ssize_t b, e, N1 = task.sides.N1, N2 = task.sides.N2, n = extent(scores, "scores", 0), m = N1 * N2
    cdef const double* f = <const double*> cube(scores, "scores", DOUBLE, n, N1, N2)
    cdef double* values = <double*> vector_out(value, "value", DOUBLE, n)
    cdef double* adversary = <double*> cube_out(q, "q", DOUBLE, n, N1, N2)
    cdef double* predictor = <double*> cube_out(p, "p", DOUBLE, n, N1, N2)
    cdef double* gaps = <double*> vector_out(gap, "gap", DOUBLE, n)
    cdef double* entropies = <double*> vector_out(entropy, "entropy", DOUBLE, n)
    cdef double* risks = <double*> vector_out(risk, "risk", DOUBLE, n)
    if not 0 <= start <= stop <= n:
        raise ValueError(f"start and stop must lie in 0..{n} in this order; got {start} and {stop}")
    cdef Scratch own = Scratch(_room_size(&task.sides))
    cdef size_t at = <size_t> own.at
    cdef Room room = _laid_out(&task.sides, &at)
    cdef Found found
    with nogil:
        for b in range(start, stop):
            if _any_nan(f + b * m, m):
                values[b] = gaps[b] = entropies[b] = risks[b] = NAN
                for e in range(b * m, b * m + m):
                    adversary[e] = predictor[e] = NAN
                continue
            for e in range(m):
                room.theta[e] = f[b * m + e] + 0.5 * smoothing
            found = _solve(&task, room.theta, adversary + b * m, predictor + b * m, &room)
            values[b], entropies[b], risks[b], gaps[b] = found.value, found.entropy, found.risk, found.gap


def certify_matchings(scores, weights, bint partial, double smoothing, p, q, gap):
    """Gaps of strategies ``p`` and ``q`` (b, N1, N2) from anywhere, whose sums are taken to be right, into ``gap``.

    Smoothing takes ``mu/2 |q|^2`` off what ``q`` gets; what is linear in it is part of ``scores``. NaN where no
    matching is allowed.
    """
    cdef Task task
    _take(scores, weights, partial, smoothing, 0.0, &task)
    cdef Py_ssize_t b, N1 = task.sides.N1, N2 = task.sides.N2, n = extent(scores, "scores", 0), m = N1 * N2
    cdef const double* f = <const double*> cube(scores, "scores", DOUBLE, n, N1, N2)
    cdef const double* predictor = <const double*> cube(p, "p", DOUBLE, n, N1, N2)
    cdef const double* adversary = <const double*> cube(q, "q", DOUBLE, n, N1, N2)
    cdef double* gaps = <double*> vector_out(gap, "gap", DOUBLE, n)
    cdef Scratch own = Scratch(_room_size(&task.sides))
    cdef size_t at = <size_t> own.at
    cdef Room room = _laid_out(&task.sides, &at)
    with nogil:
        for b in range(n):
            gaps[b] = _certificate(&task, f + b * m, predictor + b * m, adversary + b * m, &room).gap
