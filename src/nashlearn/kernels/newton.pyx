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
from nashlearn.kernels.scratch cimport Scratch

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

    cdef readonly Loss loss
    cdef readonly double mu
    cdef readonly bint learns
    cdef readonly Py_ssize_t taken
    cdef Scratch room

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


def proximal_rows(Steps steps not None, scores, codes, vertices, omega, centre, Q, tight):
    """As :func:`smoothed_rows`, with all that a step of training asks for in one pass.

    Returns the weighted sums of the smoothed losses, of what the predictors of the proximal steps secure,
    ``max_q <f + L' p, q> - <f, y>``, which bounds the losses from above, and of ``risk(q)``. The label ``y`` of a row is
    that row of ``vertices`` (labels, k) that ``codes`` (n,) names. Overwrites ``scores`` with the residuals
    ``omega (q - y)``. Cost: a proximal step a row.
    """
    cdef Loss loss = steps.loss
    cdef Py_ssize_t i, c, o, k = loss.k, options = loss.options, n = extent(scores, "scores", 0)
    cdef Py_ssize_t labels = extent(vertices, "vertices", 0)
    cdef double* f = <double*> matrix_out(scores, "scores", DOUBLE, n, k)
    cdef const Py_ssize_t* code = <const Py_ssize_t*> vector(codes, "codes", INDEX, n)
    cdef const double* vertex = <const double*> matrix(vertices, "vertices", DOUBLE, labels, k)
    cdef const double* share = <const double*> vector(omega, "omega", DOUBLE, n)
    cdef const double* middle = <const double*> matrix(centre, "centre", DOUBLE, n, k)
    cdef double* q = <double*> matrix_out(Q, "Q", DOUBLE, n, k)
    cdef unsigned char* marks = <unsigned char*> matrix_out(tight, "tight", MARK, n, options)
    cdef void* room = steps.room.at
    cdef Scratch own = Scratch((2 * k + options) * sizeof(double))
    cdef double* g = <double*> own.at
    cdef double* reply = g + k
    cdef double* p = reply + k
    cdef const double* y
    cdef double mu = steps.mu, value, agreed, risk, smooth = 0.0, upper = 0.0, risks = 0.0
    cdef Step found[_PIECE]
    cdef Scratch together = Scratch(loss.block_steps_size())
    cdef Py_ssize_t size, taken = 0
    within(code, n, labels, "codes")
    loss = loss.own(n)
    steps.taken += n
    with nogil:
        while taken < n:
            size = loss.block_steps(min(n - taken, <Py_ssize_t> _PIECE), f, middle, mu, q, marks, found, together.at)
            if size == 0:
                break
            for i in range(size):
                y, agreed = vertex + code[taken + i] * k, 0.0
                for c in range(k):
                    agreed += (f[c] - found[i].top) * y[c]
                    f[c] = share[taken + i] * (q[c] - y[c])
                smooth += share[taken + i] * (found[i].value - agreed)
                upper += share[taken + i] * (found[i].upper - agreed)
                risks += share[taken + i] * found[i].risk
                f, q = f + k, q + k
            middle, marks, taken = middle + size * k, marks + size * options, taken + size
        for i in range(taken, n):
            loss.at(i)
            for o in range(options):
                p[o] = marks[o]
            y, agreed = vertex + code[i] * k, 0.0
            value = _stepped(loss, f, y, middle, mu, q, p, g, &risk, room)
            for o in range(options):
                marks[o] = p[o] > 0.0
            for c in range(k):
                agreed += f[c] * y[c]
            smooth += share[i] * value
            for c in range(k):
                g[c] = f[c]
            value = loss.gain(p, g)
            upper += share[i] * ((value + loss.reply(g, 0.0, reply)) - agreed)
            risks += share[i] * risk
            for c in range(k):
                f[c] = share[i] * (q[c] - y[c])
            f, middle, q, marks = f + k, middle + k, q + k, marks + options
    return smooth, upper, risks


def tempered_rows(Loss loss not None, double mu, scores, codes, vertices, omega, Q, P):
    """The tempered games of all rows of ``scores`` (n, k): what they add to the objective, for ``mu > 0``.

    Returns the weighted sums of ``F(f) - <f, y>``, of ``min(L q)`` and of ``min(L q) + mu H(q)``. The label ``y`` of a
    row is that row of ``vertices`` (labels, k) that ``codes`` (n,) names. Overwrites ``scores`` with the residuals
    ``omega (q - y)``, ``P`` (n, options), strategies to begin with or NaN, with those of the predictor, and ``Q`` (n, k),
    which may be None, with those of the adversary. Scores that are not finite give NaN. O(k) a row beside the loss.
    """
    cdef Py_ssize_t i, j, k = loss.k, options = loss.options, n = extent(scores, "scores", 0)
    cdef Py_ssize_t labels = extent(vertices, "vertices", 0)
    cdef double* f = <double*> matrix_out(scores, "scores", DOUBLE, n, k)
    cdef const Py_ssize_t* code = <const Py_ssize_t*> vector(codes, "codes", INDEX, n)
    cdef const double* vertex = <const double*> matrix(vertices, "vertices", DOUBLE, labels, k)
    cdef const double* share = <const double*> vector(omega, "omega", DOUBLE, n)
    cdef double* q = NULL if Q is None else <double*> matrix_out(Q, "Q", DOUBLE, n, k)
    cdef double* p = <double*> matrix_out(P, "P", DOUBLE, n, options)
    cdef Scratch room = Scratch(loss.play_size())
    cdef Scratch own = Scratch(_PIECE * k * sizeof(double))
    cdef Scratch certificates = Scratch(_PIECE * sizeof(Certificate))
    cdef Certificate* found = <Certificate*> certificates.at
    cdef double* reply = <double*> own.at
    cdef const double* y
    cdef double agreed, lost = 0.0, risk = 0.0, entropy = 0.0
    cdef Py_ssize_t first = 0, size
    if not mu > 0.0:
        raise ValueError(f"mu must be positive; got {mu}")
    within(code, n, labels, "codes")
    loss = loss.own(n)
    with nogil:
        while first < n:
            size = min(n - first, <Py_ssize_t> _PIECE)
            if q != NULL:
                reply = q + first * k
            loss.at(first)
            loss.play(size, f, mu, p, reply, found, room.at)
            for i in range(size):
                y, agreed = vertex + code[first + i] * k, 0.0
                for j in range(k):
                    agreed += (f[j] - found[i].top) * y[j]
                    f[j] = share[first + i] * (reply[i * k + j] - y[j])
                lost += share[first + i] * (found[i].upper - agreed)
                risk += share[first + i] * found[i].least
                entropy += share[first + i] * found[i].entropy
                f += k
            p, first = p + size * options, first + size
    return lost, risk, entropy


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
