"""Losses and Jacobians of all rows, as training asks for them: of proximal steps, and of tempered games.

Symmetric matrices (k, k) of many rows are packed as their lower triangles: entry ``(c, e)``, ``e <= c``, of the row in
column ``i`` is ``packed[c (c + 1) / 2 + e, i]``.
"""

from libc.string cimport memset
from nashlearn.kernels.checks cimport (
    DOUBLE,
    INDEX,
    MARK,
    extent,
    matrix,
    matrix_out,
    rows_apart,
    vector,
    vector_out,
    within,
)
from nashlearn.kernels.loss cimport Certificate, Loss, Step
from nashlearn.kernels.scratch cimport Scratch, doubles

cdef enum:
    _PIECE = 64  # rows that are played at a time


cdef class Steps:
    """Proximal steps with one ``mu`` of many rows, call by call: they share what the loss learns on the way.

    Parameters
    ----------
    loss : Loss
    mu : float
        Positive.

    Attributes
    ----------
    learns : bool
        Whether there is anything to learn.
    taken : int
        Steps so far, which may change what rounding makes of later ones that learn.
    """

    def __cinit__(self, Loss loss not None, double mu):
        if not mu > 0.0:
            raise ValueError(f"mu must be positive; got {mu}")
        self.loss, self.mu = loss, mu
        self.learns = loss.steps_size() > loss.room_size()
        self.room = Scratch(loss.steps_size())
        loss.begin_steps(mu, self.room.at)

    def __reduce__(self):
        return Steps, (self.loss, self.mu)

    def step(self, g, q, p):
        """As :meth:`Loss.step` with ``mu``; ``p`` (options,) is positive for options that may be in play, or 0."""
        cdef const double* g_at = <const double*> vector(g, "g", DOUBLE, self.loss.k)
        cdef double* q_at = <double*> vector_out(q, "q", DOUBLE, self.loss.k)
        cdef double* p_at = <double*> vector_out(p, "p", DOUBLE, self.loss.options)
        with nogil:
            self.loss.next_step(g_at, self.mu, q_at, p_at, self.room.at)
        self.taken += 1


cdef double _stepped(
    Loss loss, const double* f, const double* y, const double* middle, double mu, double* q, double* p, double* g,
    double* risk, void* room
) noexcept nogil:
    """The proximal step of a row: ``<f, q - y> + risk(q) - mu/2 |q - middle|^2``, and its risk apart."""
    cdef Py_ssize_t c
    cdef double value, away
    for c in range(loss.k):
        g[c] = f[c] + mu * middle[c]
    loss.next_step(g, mu, q, p, room)
    risk[0] = value = loss.risk(q, room)
    for c in range(loss.k):
        away = q[c] - middle[c]
        value += f[c] * (q[c] - y[c]) - 0.5 * mu * (away * away)
    return value


def smoothed_rows(Loss loss not None, scores, Y, omega, double mu, centre, Q, tight):
    """Proximal steps of all rows of ``scores`` (n, k) from ``centre`` into ``Q``; the smoothed losses, summed.

    Row ``i`` adds ``omega_i max_q <scores, q - y> + risk(q) - mu/2 |q - centre|^2``. ``Q`` holds strategies to begin
    with; the predictor's support goes into ``tight`` (n, options), which marks one to begin with, or any.
    """
    cdef Py_ssize_t i, o, k = loss.k, options = loss.options, n = extent(scores, "scores", 0)
    cdef const double* f = <const double*> matrix(scores, "scores", DOUBLE, n, k)
    cdef const double* y = <const double*> matrix(Y, "Y", DOUBLE, n, k)
    cdef const double* share = <const double*> vector(omega, "omega", DOUBLE, n)
    cdef const double* middle = <const double*> matrix(centre, "centre", DOUBLE, n, k)
    cdef double* q = <double*> matrix_out(Q, "Q", DOUBLE, n, k)
    cdef unsigned char* marks = <unsigned char*> matrix_out(tight, "tight", MARK, n, options)
    cdef Steps steps = Steps(loss, mu)
    cdef void* room = steps.room.at
    cdef Scratch own = Scratch((k + options) * sizeof(double))
    cdef double* g = <double*> own.at
    cdef double* p = g + k
    cdef double total = 0.0, value, risk
    loss = loss.own(n)
    with nogil:
        for i in range(n):
            loss.at(i)
            for o in range(options):
                p[o] = marks[i * options + o]
            value = _stepped(loss, f + i * k, y + i * k, middle + i * k, mu, q + i * k, p, g, &risk, room)
            for o in range(options):
                marks[i * options + o] = p[o] > 0.0
            total += share[i] * value
    return total


cdef StepRoom new_step_room(Loss loss, size_t* at) noexcept nogil:
    cdef StepRoom room
    room.g, room.reply, room.p = doubles(at, loss.k), doubles(at, loss.k), doubles(at, loss.options)
    room.found = <Step*> at[0]
    at[0] += _PIECE * sizeof(Step)
    room.together = <void*> at[0]
    at[0] += loss.block_steps_size()
    return room


cdef void step_rows(
    Loss loss, const Given* given, Py_ssize_t first, Py_ssize_t n, double mu, double* f, void* steps,
    const StepRoom* room, double* sums
) noexcept nogil:
    cdef Py_ssize_t i, c, o, k = loss.k, options = loss.options, end = first + n, size
    cdef const double* middle = given.centre + first * k
    cdef double* q = given.Q + first * k
    cdef unsigned char* marks = given.tight + first * options
    cdef const double* y
    cdef double value, agreed, risk, share
    while first < end:
        size = loss.block_steps(
            min(end - first, <Py_ssize_t> _PIECE), f, middle, mu, q, marks, room.found, room.together
        )
        if size == 0:
            break
        for i in range(size):
            y, share, agreed = given.vertices + given.codes[first + i] * k, given.omega[first + i], 0.0
            for c in range(k):
                agreed += (f[c] - room.found[i].top) * y[c]
                f[c] = share * (q[c] - y[c])
            sums[0] += share * (room.found[i].value - agreed)
            sums[1] += share * (room.found[i].upper - agreed)
            sums[2] += share * room.found[i].risk
            f, q = f + k, q + k
        middle, marks, first = middle + size * k, marks + size * options, first + size
    for i in range(first, end):
        loss.at(i)
        for o in range(options):
            room.p[o] = marks[o]
        y, share, agreed = given.vertices + given.codes[i] * k, given.omega[i], 0.0
        value = _stepped(loss, f, y, middle, mu, q, room.p, room.g, &risk, steps)
        for o in range(options):
            marks[o] = room.p[o] > 0.0
        for c in range(k):
            agreed += f[c] * y[c]
        sums[0] += share * value
        for c in range(k):
            room.g[c] = f[c]
        value = loss.gain(room.p, room.g)
        sums[1] += share * ((value + loss.reply(room.g, 0.0, room.reply)) - agreed)
        sums[2] += share * risk
        for c in range(k):
            f[c] = share * (q[c] - y[c])
        f, middle, q, marks = f + k, middle + k, q + k, marks + options


cdef int take_given(Given* given, Loss loss, Py_ssize_t n, codes, vertices, omega) except -1:
    cdef Py_ssize_t labels = extent(vertices, "vertices", 0)
    given.codes = <const Py_ssize_t*> vector(codes, "codes", INDEX, n)
    given.vertices = <const double*> matrix(vertices, "vertices", DOUBLE, labels, loss.k)
    given.omega = <const double*> vector(omega, "omega", DOUBLE, n)
    within(given.codes, n, labels, "codes")
    return 0


cdef int take_steps(Given* given, Loss loss, Py_ssize_t n, centre, Q, tight) except -1:
    given.centre = <const double*> matrix(centre, "centre", DOUBLE, n, loss.k)
    given.Q = <double*> matrix_out(Q, "Q", DOUBLE, n, loss.k)
    given.tight = <unsigned char*> matrix_out(tight, "tight", MARK, n, loss.options)
    return 0


def proximal_rows(Steps steps not None, scores, codes, vertices, omega, centre, Q, tight):
    """As :func:`smoothed_rows`, with all that a step of training asks for in one pass.

    Returns the weighted sums of the smoothed losses, of what the predictors of the proximal steps secure,
    ``max_q <f + L' p, q> - <f, y>``, which bounds the losses from above, and of ``risk(q)``. The label ``y`` of a row is
    that row of ``vertices`` (labels, k) that ``codes`` (n,) names. Overwrites ``scores`` with the residuals
    ``omega (q - y)``. Cost: a proximal step a row.
    """
    cdef Py_ssize_t n = extent(scores, "scores", 0)
    cdef double* f = <double*> matrix_out(scores, "scores", DOUBLE, n, steps.loss.k)
    cdef Given given
    cdef double sums[3]
    cdef size_t size = 0
    new_step_room(steps.loss, &size)
    cdef Scratch own = Scratch(size)
    cdef size_t at = <size_t> own.at
    cdef StepRoom room = new_step_room(steps.loss, &at)
    take_given(&given, steps.loss, n, codes, vertices, omega)
    take_steps(&given, steps.loss, n, centre, Q, tight)
    cdef Loss loss = steps.loss.own(n)
    steps.taken += n
    sums[0] = sums[1] = sums[2] = 0.0
    with nogil:
        step_rows(loss, &given, 0, n, steps.mu, f, steps.room.at, &room, sums)
    return sums[0], sums[1], sums[2]


cdef TemperRoom new_temper_room(Loss loss, size_t* at) noexcept nogil:
    cdef TemperRoom room
    room.reply = doubles(at, _PIECE * loss.k)
    room.found = <Certificate*> at[0]
    at[0] += _PIECE * sizeof(Certificate)
    room.play = <void*> at[0]
    at[0] += loss.play_size()
    return room


cdef void temper_rows(
    Loss loss, const Given* given, Py_ssize_t first, Py_ssize_t n, double mu, double* f, double* p,
    const TemperRoom* room, double* sums
) noexcept nogil:
    cdef Py_ssize_t i, j, k = loss.k, options = loss.options, end = first + n, size
    cdef const double* y
    cdef double* q
    cdef double agreed, share
    while first < end:
        size = min(end - first, <Py_ssize_t> _PIECE)
        q = room.reply if given.Q == NULL else given.Q + first * k
        loss.at(first)
        loss.play(size, f, mu, p, q, room.found, room.play)
        for i in range(size):
            y, share, agreed = given.vertices + given.codes[first + i] * k, given.omega[first + i], 0.0
            for j in range(k):
                agreed += (f[j] - room.found[i].top) * y[j]
                f[j] = share * (q[i * k + j] - y[j])
            sums[0] += share * (room.found[i].upper - agreed)
            sums[1] += share * room.found[i].least
            sums[2] += share * room.found[i].entropy
            f += k
        p, first = p + size * options, first + size


def tempered_rows(Loss loss not None, double mu, scores, codes, vertices, omega, Q, P):
    """The tempered games of all rows of ``scores`` (n, k): what they add to the objective, for ``mu > 0``.

    Returns the weighted sums of ``F(f) - <f, y>``, of ``min(L q)`` and of ``min(L q) + mu H(q)``. The label ``y`` of a
    row is that row of ``vertices`` (labels, k) that ``codes`` (n,) names. Overwrites ``scores`` with the residuals
    ``omega (q - y)``, ``P`` (n, options), strategies to begin with or NaN, with those of the predictor, and ``Q`` (n, k),
    which may be None, with those of the adversary. Scores that are not finite give NaN. O(k) a row beside the loss.
    """
    cdef Py_ssize_t n = extent(scores, "scores", 0)
    cdef double* f = <double*> matrix_out(scores, "scores", DOUBLE, n, loss.k)
    cdef double* p = <double*> matrix_out(P, "P", DOUBLE, n, loss.options)
    cdef Given given
    cdef double sums[3]
    cdef size_t size = 0
    new_temper_room(loss, &size)
    cdef Scratch own = Scratch(size)
    cdef size_t at = <size_t> own.at
    cdef TemperRoom room = new_temper_room(loss, &at)
    given.Q = NULL if Q is None else <double*> matrix_out(Q, "Q", DOUBLE, n, loss.k)
    if not mu > 0.0:
        raise ValueError(f"mu must be positive; got {mu}")
    take_given(&given, loss, n, codes, vertices, omega)
    loss = loss.own(n)
    sums[0] = sums[1] = sums[2] = 0.0
    with nogil:
        temper_rows(loss, &given, 0, n, mu, f, p, &room, sums)
    return sums[0], sums[1], sums[2]


def packed_turns(Loss loss not None, double mu, omega, Q, P, rows, packed):
    """Lower triangles of ``omega_i J_i`` of these ``rows``, ``J`` the Jacobian of ``q`` at tempered equilibria (q, p).

    The first columns of ``packed`` are written. Cost: ``k`` products with a Jacobian a row.
    """
    cdef Py_ssize_t e, i, b, c, k = loss.k, n = extent(Q, "Q", 0), size = extent(rows, "rows", 0)
    cdef Py_ssize_t width = extent(packed, "packed", 1)
    cdef const double* share = <const double*> vector(omega, "omega", DOUBLE, n)
    cdef const double* q = <const double*> matrix(Q, "Q", DOUBLE, n, k)
    cdef const double* p = <const double*> matrix(P, "P", DOUBLE, n, loss.options)
    cdef const Py_ssize_t* some = <const Py_ssize_t*> vector(rows, "rows", INDEX, size)
    cdef double* out = <double*> matrix_out(packed, "packed", DOUBLE, k * (k + 1) // 2, width)
    cdef Scratch room = Scratch(loss.room_size())
    cdef Scratch own = Scratch(k * sizeof(double))
    cdef double* v = <double*> own.at
    within(some, size, n, "rows")
    if size > width:
        raise ValueError(f"packed must have room for {size} rows; got {width}")
    if not mu > 0.0:
        raise ValueError(f"mu must be positive; got {mu}")
    loss = loss.own(n)
    with nogil:
        for e in range(size):
            i = some[e]
            loss.at(i)
            for b in range(k):
                memset(v, 0, k * sizeof(double))
                v[b] = share[i]
                loss.turn(mu, q + i * k, p + i * loss.options, v, room.at)
                for c in range(b, k):
                    out[(c * (c + 1) // 2 + b) * width + e] = v[c]


def apply_packed(packed, scores):
    """``scores_i <- omega_i J_i scores_i`` in place, for scores (n, k)."""
    cdef Py_ssize_t i, c, e, apart = 0, n = extent(scores, "scores", 0), k = extent(scores, "scores", 1)
    cdef double* f = <double*> matrix_out(scores, "scores", DOUBLE, n, k)
    cdef const double* J = <const double*> rows_apart(packed, "packed", DOUBLE, k * (k + 1) // 2, n, &apart)
    cdef Scratch own = Scratch(k * sizeof(double))
    cdef double* z = <double*> own.at
    cdef double entry
    with nogil:
        for i in range(n):
            memset(z, 0, k * sizeof(double))
            for c in range(k):
                for e in range(c):
                    entry = J[(c * (c + 1) // 2 + e) * apart + i]
                    z[c] += entry * f[i * k + e]
                    z[e] += entry * f[i * k + c]
                z[c] += J[c * (c + 3) // 2 * apart + i] * f[i * k + c]
            for c in range(k):
                f[i * k + c] = z[c]


def distance(omega, Q, centre):
    """``sum_i omega_i |q_i - centre_i|^2`` of matrices (n, k), without a copy of either."""
    cdef Py_ssize_t i, c, n = extent(Q, "Q", 0), k = extent(Q, "Q", 1)
    cdef const double* share = <const double*> vector(omega, "omega", DOUBLE, n)
    cdef const double* q = <const double*> matrix(Q, "Q", DOUBLE, n, k)
    cdef const double* middle = <const double*> matrix(centre, "centre", DOUBLE, n, k)
    cdef double total = 0.0, away
    with nogil:
        for i in range(n):
            for c in range(k):
                away = q[i * k + c] - middle[i * k + c]
                total += share[i] * (away * away)
    return total
