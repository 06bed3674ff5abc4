"""Rows of the tempered game: the adversary is paid ``mu H(q)`` for the entropy of its labels.

    F_mu(f) = max_q <f, q> + min_p <p, L q> + mu H(q) = min_p mu log sum exp((f + L' p) / mu)

Each loss finds its own ``p``. Then ``q``, the best reply to it, is ``softmax((f + L' p) / mu)``, unique and positive, and
``p`` is optimal where it takes options of least cost ``(L q)_i`` alone. The certificate is what is left of that,
``<p, L q> - min_i (L q)_i``. For every label ``y`` the loss is an expected cost and a log loss,

    F_mu(f) - f_y = <p, L_y> - mu log q_y.
"""

from libc.math cimport NAN, isnan
from nashlearn.kernels.checks cimport DOUBLE, SINGLE, Kind, extent, is_single, matrix, matrix_out, vector_out
from nashlearn.kernels.loss cimport Loss
from nashlearn.kernels.scratch cimport Scratch, doubles

ctypedef fused real:
    float
    double


cdef struct Rows:  # of one type, which the function that reads them knows
    const void* scores
    void* value
    void* q
    void* p
    void* gap
    void* entropy
    void* risk
    Py_ssize_t n


cdef void _lose(const Rows* rows, const real* kind, Py_ssize_t i, Py_ssize_t k, Py_ssize_t options) noexcept nogil:
    """The answer to NaN."""
    cdef Py_ssize_t j
    for j in range(k):
        (<real*> rows.q)[i * k + j] = <real> NAN
    for j in range(options):
        (<real*> rows.p)[i * options + j] = <real> NAN
    (<real*> rows.value)[i] = (<real*> rows.gap)[i] = <real> NAN
    (<real*> rows.entropy)[i] = (<real*> rows.risk)[i] = <real> NAN


cdef void begin_row(const double* start, Py_ssize_t options, double* p) noexcept nogil:
    cdef Py_ssize_t j
    cdef double mass = 0.0
    for j in range(options):
        p[j] = start[j]
        mass += p[j]
    if not 0.5 < mass < 2.0:
        for j in range(options):
            p[j] = 1.0 / options


cdef void certify_row(
    Loss loss, const double* f, double mu, const double* p, double* reward, double* q, void* room, Certificate* found
) noexcept nogil:
    cdef Py_ssize_t j
    cdef double cost, entropy
    for j in range(loss.k):
        reward[j] = f[j]
    cost = loss.gain(p, reward)
    found.upper = entropy = cost + loss.reply(reward, mu, q)
    found.least = loss.risk(q, room)
    for j in range(loss.k):
        if q[j] > 0.0:  # 0 * -inf must count as 0
            entropy -= q[j] * f[j]
            cost += q[j] * (reward[j] - f[j])
    found.gap = max(cost - found.least, 0.0)
    found.entropy = entropy - found.gap


cdef void _temper(Loss loss, const Rows* rows, const real* kind, double mu, void* room, size_t at) noexcept nogil:
    cdef Py_ssize_t i, j, k = loss.k, options = loss.options
    cdef double* f = doubles(&at, k)
    cdef double* reward = doubles(&at, k)
    cdef double* q = doubles(&at, k)
    cdef double* p = doubles(&at, options)
    cdef double total, top
    cdef Certificate found
    loss.begin(room)
    for i in range(rows.n):
        total = 0.0
        for j in range(k):
            f[j] = (<const real*> rows.scores)[i * k + j]
            total += f[j]
        if isnan(total):
            _lose(rows, kind, i, k, options)
            continue
        top = loss.common(f)
        for j in range(k):
            f[j] -= top
        for j in range(options):
            p[j] = (<const real*> rows.p)[i * options + j]
        begin_row(p, options, p)
        loss.temper(f, mu, p, room)
        for j in range(options):
            (<real*> rows.p)[i * options + j] = <real> p[j]
            p[j] = (<real*> rows.p)[i * options + j]  # the certificate is that of what is stored
        certify_row(loss, f, mu, p, reward, q, room, &found)
        for j in range(k):
            (<real*> rows.q)[i * k + j] = <real> q[j]
        (<real*> rows.gap)[i] = <real> found.gap
        (<real*> rows.risk)[i] = <real> found.least
        (<real*> rows.entropy)[i] = <real> found.entropy
        (<real*> rows.value)[i] = <real> (top + (found.upper - found.gap))


def temper_rows(Loss loss not None, scores, double mu, value, q, p, gap, entropy, risk):
    """Equilibria of all rows of ``scores`` (n, k) for ``mu > 0``, written into the last six arguments.

    ``p`` holds strategies to begin with, or NaN. Cost: O(k) a row beside that of the loss.
    """
    cdef Rows rows
    cdef bint single = is_single(scores, "scores")
    cdef Kind kind = SINGLE if single else DOUBLE
    cdef Scratch room = Scratch(loss.room_size())
    cdef Scratch own = Scratch((3 * loss.k + loss.options) * sizeof(double))
    rows.n = extent(scores, "scores", 0)
    rows.scores = matrix(scores, "scores", kind, rows.n, loss.k)
    rows.value = vector_out(value, "value", kind, rows.n)
    rows.q = matrix_out(q, "q", kind, rows.n, loss.k)
    rows.p = matrix_out(p, "p", kind, rows.n, loss.options)
    rows.gap = vector_out(gap, "gap", kind, rows.n)
    rows.entropy = vector_out(entropy, "entropy", kind, rows.n)
    rows.risk = vector_out(risk, "risk", kind, rows.n)
    if not mu > 0.0:
        raise ValueError(f"mu must be positive; got {mu}")
    with nogil:
        if single:
            _temper[float](loss, &rows, NULL, mu, room.at, <size_t> own.at)
        else:
            _temper[double](loss, &rows, NULL, mu, room.at, <size_t> own.at)


def turn_rows(Loss loss not None, double mu, q, p, v):
    """Overwrite all rows of ``v`` (n, k) with ``J v``, ``J`` the Jacobian of ``q`` in the scores at equilibria (q, p)."""
    cdef Py_ssize_t i, n = extent(q, "q", 0), k = loss.k
    cdef const double* q_at = <const double*> matrix(q, "q", DOUBLE, n, k)
    cdef const double* p_at = <const double*> matrix(p, "p", DOUBLE, n, loss.options)
    cdef double* v_at = <double*> matrix_out(v, "v", DOUBLE, n, k)
    cdef Scratch room = Scratch(loss.room_size())
    if not mu > 0.0:
        raise ValueError(f"mu must be positive; got {mu}")
    with nogil:
        for i in range(n):
            loss.turn(mu, q_at + i * k, p_at + i * loss.options, v_at + i * k, room.at)
