"""Rows with quadratic smoothing: the game less ``smoothing Omega(q)``, ``Omega(q) = (|q|^2 - <1, q>) / 2``.

``Omega`` is 0 at every vertex of the simplex and of the cube, and negative elsewhere. The adversary's strategy is one
proximal step of the loss. The certificate is that of the two strategies: what ``q`` secures, and what a best reply to
``p``, the projection of its rewards, would earn.
"""

from libc.math cimport INFINITY, NAN, fabs, isnan
from libc.string cimport memset
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


cdef void _begin(const double* scores, const real* start, Py_ssize_t k, double* q) noexcept nogil:
    """Write ``start`` into ``q`` where the scores allow it, else the vertex of the largest score."""
    cdef Py_ssize_t j, best = 0
    cdef double mass = 0.0
    for j in range(k):
        if scores[j] > scores[best]:
            best = j
        q[j] = start[j] if scores[j] > -INFINITY else 0.0
        mass += q[j]
    if not fabs(mass - 1.0) < 1e-9 and k > 0:
        memset(q, 0, k * sizeof(double))
        q[best] = 1.0


cdef void _lose(const Rows* rows, const real* kind, Py_ssize_t i, Py_ssize_t k, Py_ssize_t options) noexcept nogil:
    """The answer to NaN."""
    cdef Py_ssize_t j
    for j in range(k):
        (<real*> rows.q)[i * k + j] = <real> NAN
    for j in range(options):
        (<real*> rows.p)[i * options + j] = <real> NAN
    (<real*> rows.value)[i] = (<real*> rows.gap)[i] = <real> NAN
    (<real*> rows.entropy)[i] = (<real*> rows.risk)[i] = <real> NAN


cdef void _smooth(
    Loss loss, const Rows* rows, const real* kind, double smoothing, void* room, size_t at
) noexcept nogil:
    cdef Py_ssize_t i, j, k = loss.k, options = loss.options
    cdef double* f = doubles(&at, k)
    cdef double* g = doubles(&at, k)
    cdef double* x = doubles(&at, k)
    cdef double* y = doubles(&at, options)
    cdef real* q
    cdef double total, top, least, lower, omega
    for i in range(rows.n):
        q, total = <real*> rows.q + i * k, 0.0
        for j in range(k):
            f[j] = (<const real*> rows.scores)[i * k + j]
            total += f[j]
        if isnan(total):
            _lose(rows, kind, i, k, options)
            continue
        top = loss.common(f)
        for j in range(k):
            g[j] = f[j] - top + 0.5 * smoothing
        _begin(f, q, k, x)
        loss.prox(k, g, smoothing, x, y, room)
        least, lower, omega = loss.risk(x, room), 0.0, 0.0
        for j in range(k):
            q[j] = <real> x[j]
            if x[j] > 0.0:  # 0 * -inf must count as 0
                lower += (g[j] - 0.5 * smoothing) * x[j]
                omega += 0.5 * (x[j] - 1.0) * x[j]
        for j in range(options):
            (<real*> rows.p)[i * options + j] = <real> y[j]
        (<real*> rows.risk)[i] = <real> least
        (<real*> rows.entropy)[i] = <real> (least - smoothing * omega)
        lower += least - smoothing * omega
        (<real*> rows.value)[i] = <real> (top + lower)
        (<real*> rows.gap)[i] = <real> max(loss.gain(y, g) + loss.reply(g, smoothing) - lower, 0.0)


def smooth_rows(Loss loss not None, scores, double smoothing, value, q, p, gap, entropy, risk):
    """Equilibria of all rows of ``scores`` (n, k) with ``smoothing > 0``, written into the last six arguments.

    ``q`` holds strategies to begin with, or NaN. Cost: one proximal step of the loss a row.
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
    if not smoothing > 0.0:
        raise ValueError(f"smoothing must be positive; got {smoothing}")
    with nogil:
        if single:
            _smooth[float](loss, &rows, NULL, smoothing, room.at, <size_t> own.at)
        else:
            _smooth[double](loss, &rows, NULL, smoothing, room.at, <size_t> own.at)
