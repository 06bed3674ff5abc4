"""Rows of the tempered game: the adversary is paid ``mu H(q)`` for the entropy of its labels.

    F_mu(f) = max_q <f, q> + min_p <p, L q> + mu H(q) = min_p mu log sum exp((f + L' p) / mu)

Each loss finds its own ``p``. Then ``q``, the best reply to it, is ``softmax((f + L' p) / mu)``, unique and positive,
and ``p`` is optimal where it takes options of least cost ``(L q)_i`` alone. The certificate is what is left of that,
``<p, L q> - min_i (L q)_i``. For every label ``y`` the loss is an expected cost and a log loss,

    F_mu(f) - f_y = <p, L_y> - mu log q_y.
"""

from libc.math cimport INFINITY, sqrt
from libc.string cimport memset
from nashlearn.kernels.checks cimport DOUBLE, SINGLE, Kind, extent, is_single, matrix, matrix_out, vector, vector_out
from nashlearn.kernels.loss cimport Certificate, Loss
from nashlearn.kernels.scratch cimport Scratch, doubles

ctypedef fused real:
    float
    double

cdef enum:
    _PIECE = 64  # rows that are played at a time

cdef double _FLAT = 1e-12  # curvature, times mu, that is none


cdef struct Rows:  # of one type, which the function that reads them knows
    const void* scores
    void* value
    void* q
    void* p
    void* gap
    void* entropy
    void* risk
    Py_ssize_t n


cdef struct Piece:  # in double precision
    double* f
    double* p
    double* q
    double* reward  # of one row
    Certificate* found


cdef Piece _laid_out(Loss loss, size_t* at) noexcept nogil:
    cdef Piece piece
    piece.f, piece.q = doubles(at, _PIECE * loss.k), doubles(at, _PIECE * loss.k)
    piece.p, piece.reward = doubles(at, _PIECE * loss.options), doubles(at, loss.k)
    piece.found = <Certificate*> at[0]
    at[0] += _PIECE * sizeof(Certificate)
    return piece


cdef void _temper_in_single(
    Loss loss, const Rows* rows, Py_ssize_t first, Py_ssize_t n, double mu, Piece* piece, void* room
) noexcept nogil:
    """Play in double precision and round. The gap is that of the ``p`` that is stored, over what ``q`` secures."""
    cdef const float* f = <const float*> rows.scores + first * loss.k
    cdef float* p = <float*> rows.p + first * loss.options
    cdef float* q = <float*> rows.q + first * loss.k
    cdef Py_ssize_t i, j, k = loss.k, options = loss.options
    cdef Certificate* found
    cdef double lower
    for j in range(n * k):
        piece.f[j] = f[j]
    for j in range(n * options):
        piece.p[j] = p[j]
    loss.play(n, piece.f, mu, piece.p, piece.q, piece.found, room)
    for j in range(n * options):
        p[j] = <float> piece.p[j]
        piece.p[j] = p[j]
    for j in range(n * k):
        q[j] = <float> piece.q[j]
    for i in range(n):
        loss.at(first + i)
        found = piece.found + i
        for j in range(k):
            piece.reward[j] = piece.f[i * k + j] - found.top
        lower = found.upper - found.gap
        found.upper = loss.gain(piece.p + i * options, piece.reward)
        found.upper += loss.reply(piece.reward, mu, piece.q)
        found.gap = found.upper - lower if found.upper > lower else 0.0 * lower  # NaN stays NaN


cdef void _temper(Loss loss, const Rows* rows, const real* kind, double mu, void* room, size_t at) noexcept nogil:
    cdef Py_ssize_t i, n, first = 0, k = loss.k, options = loss.options
    cdef Piece piece = _laid_out(loss, &at)
    cdef Certificate* found
    while first < rows.n:
        n = min(<Py_ssize_t> _PIECE, rows.n - first)
        loss.at(first)
        if real is double:
            loss.play(
                n, <const double*> rows.scores + first * k, mu, <double*> rows.p + first * options,
                <double*> rows.q + first * k, piece.found, room,
            )
        else:
            _temper_in_single(loss, rows, first, n, mu, &piece, room)
        for i in range(n):
            found = piece.found + i
            (<real*> rows.value)[first + i] = <real> (found.top + (found.upper - found.gap))
            (<real*> rows.gap)[first + i] = <real> found.gap
            (<real*> rows.entropy)[first + i] = <real> found.entropy
            (<real*> rows.risk)[first + i] = <real> found.least
        first += n


def temper_rows(Loss loss not None, scores, double mu, value, q, p, gap, entropy, risk):
    """Equilibria of all rows of ``scores`` (n, k) for ``mu > 0``, written into the last six arguments.

    ``p`` holds strategies to begin with, or NaN. Cost: O(k) a row beside that of the loss.
    """
    cdef Rows rows
    cdef bint single = is_single(scores, "scores")
    cdef Kind kind = SINGLE if single else DOUBLE
    cdef Scratch room = Scratch(loss.play_size())
    cdef size_t size = 0
    _laid_out(loss, &size)
    cdef Scratch own = Scratch(size)
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
    loss = loss.own(rows.n)
    with nogil:
        if single:
            _temper[float](loss, &rows, NULL, mu, room.at, <size_t> own.at)
        else:
            _temper[double](loss, &rows, NULL, mu, room.at, <size_t> own.at)


def turn_rows(Loss loss not None, double mu, q, p, v):
    """Overwrite rows of ``v`` (n, k) with ``J v``, ``J`` the Jacobian of ``q`` in the scores at equilibria (q, p)."""
    cdef Py_ssize_t i, n = extent(q, "q", 0), k = loss.k
    cdef const double* q_at = <const double*> matrix(q, "q", DOUBLE, n, k)
    cdef const double* p_at = <const double*> matrix(p, "p", DOUBLE, n, loss.options)
    cdef double* v_at = <double*> matrix_out(v, "v", DOUBLE, n, k)
    cdef Scratch room = Scratch(loss.room_size())
    if not mu > 0.0:
        raise ValueError(f"mu must be positive; got {mu}")
    loss = loss.own(n)
    with nogil:
        for i in range(n):
            loss.at(i)
            loss.turn(mu, q_at + i * k, p_at + i * loss.options, v_at + i * k, room.at)


cdef void _turned(
    Loss loss, double mu, const double* q, const double* p, Py_ssize_t most, double* U, void* room
) noexcept nogil:
    """The first rows ``u_a`` (most, k) of a factor, ``J = sum_a u_a u_a'``, by Cholesky's method from likely labels on."""
    cdef Py_ssize_t a, b, c, pivot, k = loss.k
    cdef double root, last = INFINITY
    cdef Py_ssize_t before = -1
    cdef double* u
    for a in range(most):
        pivot, u = -1, U + a * k
        memset(u, 0, k * sizeof(double))
        for c in range(k):  # the next label by its probability, the first of equals
            if (q[c] < last or (q[c] == last and c > before)) and (pivot < 0 or q[c] > q[pivot]):
                pivot = c
        if pivot < 0:
            continue
        last, before = q[pivot], pivot
        u[pivot] = 1.0
        loss.turn(mu, q, p, u, room)
        for b in range(a):
            root = U[b * k + pivot]
            for c in range(k):
                u[c] -= root * U[b * k + c]
        if u[pivot] <= _FLAT / mu:
            memset(u, 0, k * sizeof(double))
            continue
        root = 1.0 / sqrt(u[pivot])
        for c in range(k):
            u[c] *= root


def turn_directions(Loss loss not None, double mu, omega, q, p, U):
    """Factor each row's Jacobian ``J`` of ``q`` in the scores, ``omega_i J_i = sum_a U_ia U_ia'``, but for what is left out.

    ``U`` (n most, k) holds ``most`` directions for each row: those of its likeliest labels, 0 where there are fewer.
    Cost: as many products with ``J``.
    """
    cdef Py_ssize_t i, c, n = extent(q, "q", 0), k = loss.k
    cdef Py_ssize_t most = extent(U, "U", 0) // n if n else 0
    cdef const double* share = <const double*> vector(omega, "omega", DOUBLE, n)
    cdef const double* q_at = <const double*> matrix(q, "q", DOUBLE, n, k)
    cdef const double* p_at = <const double*> matrix(p, "p", DOUBLE, n, loss.options)
    cdef double* out = <double*> matrix_out(U, "U", DOUBLE, n * most, k)
    cdef Scratch room = Scratch(loss.room_size())
    cdef double root
    if not mu > 0.0:
        raise ValueError(f"mu must be positive; got {mu}")
    loss = loss.own(n)
    with nogil:
        for i in range(n):
            loss.at(i)
            _turned(loss, mu, q_at + i * k, p_at + i * loss.options, most, out + i * most * k, room.at)
            root = sqrt(share[i])
            for c in range(most * k):
                out[i * most * k + c] *= root
