"""The game over arborescences: pivots from the projection of the scores, or the interior point method, with cuts.

Both players choose points of the arborescence polytope, the loss counts wrong heads (or heads and labels):

    max_q min_p <theta, q> + sum_d c_d - <p, C q> - mu Omega(q),     C = diag(c_d) over the arcs into token d,

with ``Omega(q) = (|q|^2 - <1, q>)/2``, which is 0 at every tree.

Rows of the polytope are simplices; a cut ``x(arcs into S) >= 1`` joins where either player's strategy violates it, at
first those that the projection of the scores needs. Where all wrong heads cost the same, nothing is smoothed or
labelled and heads are not almost certain, the simplex method begins at the face of the projection
(:mod:`nashlearn.kernels.tree_pivots`), a few pivots from an equilibrium that is exact up to rounding. Elsewhere, or
where rounding gets in its way, the interior point method plays with the entries that matter. The certificate needs best
trees only:

    upper = max_y <theta - C p - mu (q - 1/2), y> + mu/2 |q|^2,     lower = <theta, q> - mu Omega(q) - max_y <C q, y>,

each plus ``sum_d c_d``; at ``mu = 0`` they are what each player can secure.
"""

from libc.math cimport INFINITY, NAN, fabs, isnan
from libc.stdlib cimport free
from libc.string cimport memcmp, memcpy, memmove, memset
from nashlearn.kernels.checks cimport DOUBLE, cube, cube_out, extent, vector, vector_out
from nashlearn.kernels.interior cimport saddle_point, saddle_room
from nashlearn.kernels.interior_newton cimport Saddle
from nashlearn.kernels.scratch cimport Scratch, ask, doubles, indices
from nashlearn.kernels.tree_basis cimport Basis, lay_basis
from nashlearn.kernels.tree_bounds cimport Bounds, certify_inside, certify_strategies, concede, scale_rows, whole
from nashlearn.kernels.tree_cuts cimport separate
from nashlearn.kernels.tree_entries cimport Stage, lay_stage, list_entries, take_near, take_priced, take_replies
from nashlearn.kernels.tree_map cimport best_labelled
from nashlearn.kernels.tree_pivots cimport add_cut, begin_at_projection, pivot
from nashlearn.kernels.tree_projection cimport price_cuts
from nashlearn.kernels.tree_shift cimport shift

cdef enum:
    _ROUNDS = 30  # of cuts for one set of entries
    _ITERATIONS = 100
    # A pivot looks at all arcs, an iteration of the interior point method at those in play: where fewer than one in so
    # many is used beside the heads of tokens, the latter is faster.
    _CERTAIN = 60
cdef double _VIOLATED = 1e-11  # by how much strategies of a basis violate a cut that joins it
cdef double _REACH = 1.0  # entries of a row that are looked at first, in units of the largest loss of a token
cdef double _SLACK = 0.05  # how far from worth using those may be that are looked at next, in the same unit


cdef Bounds _pure(Stage* s, double worth, double* p, double* q) noexcept nogil:
    """Both players on the tree ``s.heads`` with its best labels, which is worth so much; leaves ``s.arc`` as it is."""
    cdef Py_ssize_t d, a, n = s.n, size = n * (n + 1) * s.labels
    cdef Bounds bounds
    memset(p, 0, size * sizeof(double))
    memset(q, 0, size * sizeof(double))
    for d in range(n):
        a = d * (n + 1) + s.heads[d]
        p[a * s.labels + s.label[a]] = q[a * s.labels + s.label[a]] = 1.0
    bounds.upper, bounds.lower = concede(s, p, q, s.other), worth
    bounds.entropy = bounds.risk = 0.0  # the tree is known, and smoothing is 0 at trees
    return bounds


cdef Py_ssize_t _price(Stage* s, double unit) noexcept nogil:
    """Project the best arcs' scores in so large a unit, roughly: how many cuts this needs, which ``s.cuts`` has."""
    cdef Py_ssize_t a
    cdef double exact = 0.0
    for a in range(s.n * (s.n + 1)):
        s.other[a] = s.arc[a] / unit
    return price_cuts(s.other, s.n, s.single_root, True, s.heads, &s.work, &s.cuts, &s.flow, &exact)


cdef void _seed(Stage* s, double unit, Py_ssize_t k) noexcept nogil:
    """Begin with the cuts of the projection; what they add to each arc (``s.lift``)."""
    cdef Py_ssize_t c, d, h, n = s.n
    cdef const unsigned char* inside
    cdef double lam
    memset(s.lift, 0, n * (n + 1) * sizeof(double))
    s.K = 0
    for c in range(k):
        inside, lam = s.cuts.members + c * n, unit * s.cuts.lam[c]
        for d in range(n):
            if inside[d]:
                s.lift[d * (n + 1)] += lam
                for h in range(n):
                    if not inside[h]:
                        s.lift[d * (n + 1) + h + 1] += lam
        if not s.cuts.free[c] and lam > 0.0:
            memcpy(s.sets + s.K * n, inside, n)
            s.K += 1


cdef void _incidence(const Stage* s, Py_ssize_t* first, Py_ssize_t* member) noexcept nogil:
    """For each entry the constraints that it occurs in, in compressed rows."""
    cdef Py_ssize_t e, c, d, h, t = 0, n = s.n
    cdef const unsigned char* inside
    for e in range(s.m):
        first[e], d, h = t, s.token[e], s.head[e]
        if s.one and h == 0:
            member[t] = 0
            t += 1
        for c in range(s.K):
            inside = s.sets + c * n
            if inside[d] and (h == 0 or not inside[h - 1]):
                member[t] = c + s.one
                t += 1
    first[s.m] = t


cdef void _add_violated(Stage* s, const double* x) noexcept nogil:
    """Add the cuts that a strategy violates."""
    cdef Py_ssize_t e, c, old, new, n = s.n
    cdef const unsigned char* found
    cdef bint known
    memset(s.other, 0, n * (n + 1) * sizeof(double))
    for e in range(s.m):
        s.other[s.token[e] * (n + 1) + s.head[e]] += x[e]
    new = separate(s.other, n, s.cuts.members, s.cuts.room, 10.0 * s.tol, &s.flow)
    for c in range(new):
        found, known = s.cuts.members + c * n, False
        for old in range(s.K):
            known = known or memcmp(s.sets + old * n, found, n) == 0
        if s.K < s.most and not known:
            memcpy(s.sets + s.K * n, found, n)
            s.K += 1


cdef void _widen(double* lam, Py_ssize_t before, Py_ssize_t K) noexcept nogil:
    """Potentials (2, before) as (2, K), those of new constraints 0."""
    memmove(lam + K, lam + before, before * sizeof(double))
    memset(lam + before, 0, (K - before) * sizeof(double))
    memset(lam + K + before, 0, (K - before) * sizeof(double))


cdef struct Cast:  # the entries as the interior point method wants them
    double* reward
    double* weight
    double* cost
    double* x  # (2, m) both strategies
    Py_ssize_t* first


cdef size_t _lay_cast(Cast* cast, Py_ssize_t m, size_t at) noexcept nogil:
    cast.reward, cast.weight, cast.cost = doubles(&at, m), doubles(&at, m), doubles(&at, m)
    cast.x, cast.first = doubles(&at, 2 * m), indices(&at, m + 1)
    return at


cdef bint _prepare(Stage* s, Cast* cast) noexcept nogil:
    """Fill in the entries; strategies and potentials begin at 0. False where memory is lacking."""
    cdef Py_ssize_t e, d, roots = 0, n = s.n
    if not ask(&s.entries, _lay_cast(cast, s.m, 0)):
        return False
    _lay_cast(cast, s.m, <size_t> s.entries.at)
    for e in range(s.m):
        cast.reward[e] = s.theta[(s.token[e] * (n + 1) + s.head[e]) * s.labels + s.kind[e]]
        cast.weight[e], cast.cost[e] = s.price[s.token[e]], 0.0
    for d in range(n):
        roots += s.usable[d * (n + 1)]
    # One root arc: an equality, unless a single token may have it, whose row says as much.
    s.one = s.single_root and roots > 1
    memset(s.equality, 0, s.most + 1)
    s.equality[0] = s.one
    memset(cast.x, 0, 2 * s.m * sizeof(double))
    memset(s.y, 0, 2 * n * sizeof(double))
    memset(s.lam, 0, 2 * (s.K + s.one) * sizeof(double))
    return True


cdef bint _play(Stage* s, double* p, double* q) noexcept nogil:
    """The interior point method on the entries listed, with cuts as they are violated; False where memory is lacking.

    Writes both strategies, and the potentials into ``s.y`` and ``s.lam``.
    """
    cdef Cast cast
    cdef Saddle game
    cdef Py_ssize_t e, a, turn, n = s.n, m = s.m, size = n * (n + 1) * s.labels
    cdef Py_ssize_t* member
    if not _prepare(s, &cast):
        return False
    game.m, game.R, game.mu_p, game.mu_q, game.row = m, n, 0.0, s.mu, s.token
    game.reward, game.weight, game.cost = cast.reward, cast.weight, cast.cost
    game.first, game.equality = cast.first, s.equality
    for turn in range(_ROUNDS):
        game.K = s.K + s.one
        if not ask(&s.room, m * game.K * sizeof(Py_ssize_t) + saddle_room(m, n, game.K)):
            return False
        game.member = member = <Py_ssize_t*> s.room.at
        _incidence(s, cast.first, member)
        saddle_point(&game, s.tol, _ITERATIONS, turn > 0, cast.x, s.y, s.lam, member + m * game.K)
        _add_violated(s, cast.x)
        _add_violated(s, cast.x + m)
        if s.K + s.one == game.K:
            break
        _widen(s.lam, game.K, s.K + s.one)
    memset(p, 0, size * sizeof(double))
    memset(q, 0, size * sizeof(double))
    for e in range(m):
        a = (s.token[e] * (n + 1) + s.head[e]) * s.labels + s.kind[e]
        p[a], q[a] = cast.x[e], cast.x[m + e]
    return True


cdef Py_ssize_t _undecided(const Stage* s) noexcept nogil:
    """How many arcs the projection uses beside one for each token."""
    cdef Py_ssize_t a, used = 0
    for a in range(s.n * (s.n + 1)):
        used += s.cuts.x[a] > 0.0
    return used - s.n


cdef Py_ssize_t _learn(Stage* s, Basis* basis, const double* x) noexcept nogil:
    """Add the cuts that a strategy violates to a basis; how many."""
    cdef Py_ssize_t c, n = s.n, new = separate(x, n, s.cuts.members, n, _VIOLATED, &s.flow)
    for c in range(new):
        if not add_cut(basis, s.cuts.members + c * n):
            return c
    return new


cdef bint _pivot(
    Stage* s, Basis* basis, Py_ssize_t k, double enough, double* p, double* q, Bounds* bounds
) noexcept nogil:
    """The simplex method from the face of the projection and its ``k`` cuts; whether it came to an equilibrium.

    Strategies lie in the polytope then; where arcs are forbidden, rows sum to 1 and cuts may be violated by 1e-11, or by
    rounding, which grows with the scores.
    """
    cdef Py_ssize_t a, turn, forbidden = 0, left = 10 + 4 * s.n, size = s.n * (s.n + 1)
    if not begin_at_projection(basis, s.theta, s.price[0], s.single_root, k, &s.cuts):
        return False
    for a in range(size):
        forbidden += s.theta[a] == -INFINITY
    for turn in range(_ROUNDS):
        if not pivot(basis, &left) or basis.K == basis.room:  # without room, new cuts would pass for none
            return False
        for a in range(size):
            p[a], q[a] = max(basis.at[0].x[a], 0.0), max(basis.at[1].x[a], 0.0)
        scale_rows(p, s.n)
        scale_rows(q, s.n)
        if forbidden == s.n:
            bounds[0] = certify_inside(s, p, q)
            if bounds.upper - bounds.lower <= enough:
                return True
        if _learn(s, basis, basis.at[1].x) == 0 and _learn(s, basis, basis.at[0].x) == 0:
            bounds[0] = certify_strategies(s, p, q)
            return forbidden > s.n and bounds.upper - bounds.lower <= enough
    return False


cdef Bounds _settle(Stage* s, Basis* basis, double* p, double* q, Py_ssize_t* entries) noexcept nogil:
    """Play the game of ``s.theta``, from which offsets have been taken; its bounds, as certified.

    Entries are added until these are within ``10 tol (1 + sum_d (c_d + mu))``, or until there are no more; how many
    there are at the end is written, 0 for a tree that both players choose. Without a tree there is nothing to be had:
    ``-inf``, with a gap of ``inf``.
    """
    cdef Bounds bounds
    cdef double most = s.price[0], least = s.price[0], total = 0.0, worth, unit, reach, enough
    cdef Py_ssize_t a, d, k, n = s.n
    cdef bint even
    entries[0] = 0
    worth = best_labelled(s.theta, n, s.labels, s.single_root, s.arc, s.label, s.heads, &s.work)
    if worth == -INFINITY:
        bounds.upper, bounds.lower, bounds.entropy, bounds.risk = INFINITY, -INFINITY, NAN, NAN
        return bounds
    bounds = _pure(s, worth, p, q)
    if bounds.upper - bounds.lower <= 1e-14 * (1.0 + fabs(bounds.lower)):
        return bounds
    for d in range(n):
        most, least = max(most, s.price[d]), min(least, s.price[d])
        total += s.price[d]
    reach, enough = _REACH * (most + s.mu), 10.0 * s.tol * (1.0 + total + n * s.mu)
    even = s.mu == 0.0 and s.labels == 1 and least == most and most > 0.0
    unit = most if even else 1.0
    k = _price(s, unit)
    _seed(s, unit, k)
    if even and k >= 0 and _undecided(s) * _CERTAIN >= n * n:
        if _pivot(s, basis, k, enough, p, q, &bounds):
            return bounds
        bounds.upper, bounds.lower = INFINITY, -INFINITY  # strategies may be those of a basis that was given up
    memset(s.take, 0, n * (n + 1) * s.labels)
    # Entries must hold a tree. Those near the best of each row need not, where scores are far apart.
    best_labelled(s.theta, n, s.labels, s.single_root, s.arc, s.label, s.heads, &s.work)
    for d in range(n):
        a = d * (n + 1) + s.heads[d]
        s.take[a * s.labels + s.label[a]] = True
    take_near(s, reach)
    while bounds.upper - bounds.lower > enough:
        list_entries(s)
        if s.m > entries[0]:
            entries[0] = s.m
            if not _play(s, p, q):
                s.failed = True
                break
            bounds = certify_strategies(s, p, q)
            if bounds.upper - bounds.lower > enough:
                take_replies(s)
                take_priced(s, _SLACK * most)
        elif reach < INFINITY:
            reach = 3.0 * reach if reach < 10.0 * most else INFINITY
            take_near(s, reach)
        else:
            break
    return bounds


cdef class TreeSolver:
    """Solver of sentences of ``n`` tokens, whose arcs have so many labels."""

    def __cinit__(self, Py_ssize_t n, Py_ssize_t labels, bint single_root):
        if n < 1 or labels < 1:
            raise ValueError(f"there must be at least one token and one label; got {n} and {labels}")
        if <double> n * n * n * labels > 1e15:  # sizes of arrays would overflow
            raise ValueError(f"n and labels must be of a size that memory can hold; got {n} and {labels}")
        self.memory = Scratch(lay_basis(&self.basis, n, lay_stage(&self.stage, n, labels, 0)))
        lay_basis(&self.basis, n, lay_stage(&self.stage, n, labels, <size_t> self.memory.at))
        self.stage.single_root = single_root
        memset(self.stage.heads, 0, n * sizeof(Py_ssize_t))  # heads at all times, be there a tree or not

    def __dealloc__(self):
        free(self.stage.entries.at)
        free(self.stage.room.at)

    cdef Outcome solve(
        self, const double* scores, const double* price, double mu, double tol, double* q, double* p
    ) noexcept nogil:
        cdef Stage* s = &self.stage
        cdef Py_ssize_t a, entries, missing = 0, forbidden = 0, size = s.n * (s.n + 1) * s.labels
        cdef double offset
        cdef Bounds bounds
        cdef Outcome found
        s.price, s.mu, s.tol = price, mu, tol
        for a in range(size):
            missing += isnan(scores[a]) != 0
        if missing:
            for a in range(size):
                q[a] = p[a] = NAN
            found.value = found.gap = found.entropy = found.risk = NAN
            return found
        offset = shift(scores, s.n, s.labels, s.single_root, s.theta)
        bounds = _settle(s, &self.basis, p, q, &entries)
        for a in range(size):
            forbidden += s.theta[a] == -INFINITY
        if entries and s.labels == 1 and forbidden == s.n:
            bounds = certify_inside(s, p, q)
        elif entries and not (whole(p, s.n, size // s.n) and whole(q, s.n, size // s.n)):
            bounds = _pure(
                s, best_labelled(s.theta, s.n, s.labels, s.single_root, s.arc, s.label, s.heads, &s.work), p, q
            )
        found.value, found.gap = offset + bounds.lower, max(bounds.upper - bounds.lower, 0.0)
        found.entropy, found.risk = bounds.entropy, bounds.risk
        return found


def certify(theta, price, double mu, bint single_root, p, q):
    """Upper and lower bound of the game's value from strategies ``p`` and ``q``, all shaped (n, n + 1, labels).

    Then what the lower one consists of beside the scores: the entropy, and of that the risk ``min_p <p, L q>``. Scores
    of a token as its own head must be ``-inf``. Cost: two best trees.
    """
    cdef Py_ssize_t n = extent(theta, "theta", 0), labels = extent(theta, "theta", 2)
    cdef const double* scores = <const double*> cube(theta, "theta", DOUBLE, n, n + 1, labels)
    cdef const double* reply = <const double*> cube(p, "p", DOUBLE, n, n + 1, labels)
    cdef const double* strategy = <const double*> cube(q, "q", DOUBLE, n, n + 1, labels)
    cdef TreeSolver solver = TreeSolver(n, labels, single_root)
    cdef Bounds found
    solver.stage.price, solver.stage.mu = <const double*> vector(price, "price", DOUBLE, n), mu
    memcpy(solver.stage.theta, scores, n * (n + 1) * labels * sizeof(double))
    with nogil:
        found = certify_strategies(&solver.stage, reply, strategy)
    return found.upper, found.lower, found.entropy, found.risk


def solve_trees(
    scores, price, double mu, bint single_root, double tol, Py_ssize_t start, Py_ssize_t stop, value, q, p, gap,
    entropy, risk
):
    """Solve the sentences ``start`` to ``stop`` of a batch (b, n (n + 1), labels), of which each arc has its labels.

    ``price`` (n) is what a wrong head costs; the last six arguments are written, the strategies shaped as the scores,
    the others (b). A gap of ``inf`` says that no tree is allowed; a sentence with NaN gives NaN. Where arcs have no
    labels (one label) and none is forbidden, both strategies are moved into the polytope, and bounds are those of the
    strategies there. Elsewhere they may violate cuts by ten times ``tol``, which bounds do not show.
    """
    cdef Py_ssize_t i, n = extent(price, "price", 0), b = extent(scores, "scores", 0)
    cdef Py_ssize_t labels = extent(scores, "scores", 2), size = n * (n + 1) * labels
    cdef const double* given = <const double*> cube(scores, "scores", DOUBLE, b, n * (n + 1), labels)
    cdef const double* costs = <const double*> vector(price, "price", DOUBLE, n)
    cdef double* strategy = <double*> cube_out(q, "q", DOUBLE, b, n * (n + 1), labels)
    cdef double* reply = <double*> cube_out(p, "p", DOUBLE, b, n * (n + 1), labels)
    cdef double* values = <double*> vector_out(value, "value", DOUBLE, b)
    cdef double* gaps = <double*> vector_out(gap, "gap", DOUBLE, b)
    cdef double* entropies = <double*> vector_out(entropy, "entropy", DOUBLE, b)
    cdef double* risks = <double*> vector_out(risk, "risk", DOUBLE, b)
    cdef TreeSolver solver = TreeSolver(n, labels, single_root)
    cdef Outcome found
    if not 0 <= start <= stop <= b:
        raise ValueError(f"start and stop must lie in 0..{b} in this order; got {start} and {stop}")
    if not (mu >= 0.0 and tol >= 0.0):
        raise ValueError(f"mu and tol must not be negative; got {mu} and {tol}")
    with nogil:
        for i in range(start, stop):
            found = solver.solve(given + i * size, costs, mu, tol, strategy + i * size, reply + i * size)
            values[i], gaps[i], entropies[i], risks[i] = found.value, found.gap, found.entropy, found.risk
    if solver.stage.failed:
        raise MemoryError("there is no room for the interior point method")
