"""Passes over dense rows: scores, games and moments, a few hundred rows at a time.

What a product has read is still in the cache when the next one wants it, and threads that share the blocks of a data
set meet at the interpreter's lock once a block.
"""

from libc.math cimport NAN
from nashlearn.kernels.checks cimport DOUBLE, matrix_out
from nashlearn.kernels.dense_rows cimport Dense
from nashlearn.kernels.loss cimport Loss
from nashlearn.kernels.newton cimport (
    Given,
    Steps,
    StepRoom,
    TemperRoom,
    new_step_room,
    new_temper_room,
    step_rows,
    take_given,
    take_steps,
    temper_rows,
)
from nashlearn.kernels.scratch cimport Scratch, doubles, indices


def proximal_pass(Steps steps not None, Dense rows not None, W, codes, vertices, omega, centre, Q, tight, G):
    """:func:`nashlearn.kernels.newton.proximal_rows` of the rows' scores at weights ``W`` (k, d + 1).

    Adds the moments of the residuals to ``G`` (k, d + 1). Cost: both products, and a proximal step a row.
    """
    cdef Py_ssize_t n = rows.n, k = steps.loss.k, together = rows.together(), first = 0, size
    cdef const double* w = rows.weights(W, k)
    cdef double* moments = rows.weights(G, k)
    cdef double* f
    cdef Py_ssize_t* listed
    cdef Given given
    cdef StepRoom room
    cdef double sums[3]
    cdef size_t at = 0
    doubles(&at, together * k)
    indices(&at, max(together, k))
    new_step_room(steps.loss, &at)
    cdef Scratch own = Scratch(at)
    at = <size_t> own.at
    f, listed, room = doubles(&at, together * k), indices(&at, max(together, k)), new_step_room(steps.loss, &at)
    take_given(&given, steps.loss, n, codes, vertices, omega)
    take_steps(&given, steps.loss, n, centre, Q, tight)
    cdef Loss loss = steps.loss.own(n)
    steps.taken += n
    sums[0] = sums[1] = sums[2] = 0.0
    with nogil:
        while first < n:
            size = min(together, n - first)
            rows.put_scores(first, size, w, k, f, listed)
            step_rows(loss, &given, first, size, steps.mu, f, steps.room.at, &room, sums)
            rows.put_moments(first, size, f, k, moments, listed)
            first += size
    return sums[0], sums[1], sums[2]


def tempered_pass(Loss loss not None, double mu, Dense rows not None, W, codes, vertices, omega, Q, P, G):
    """:func:`nashlearn.kernels.newton.tempered_rows` of the rows' scores at weights ``W`` (k, d + 1).

    Adds the moments of the residuals to ``G`` (k, d + 1); ``P`` may be None, too. Cost: both products, and the games.
    """
    cdef Py_ssize_t n = rows.n, k = loss.k, options = loss.options, together = rows.together(), first = 0, size, i
    cdef const double* w = rows.weights(W, k)
    cdef double* moments = rows.weights(G, k)
    cdef double* all_p = NULL if P is None else <double*> matrix_out(P, "P", DOUBLE, n, options)
    cdef double* f
    cdef double* p
    cdef double* own_p
    cdef Py_ssize_t* listed
    cdef Given given
    cdef TemperRoom room
    cdef double sums[3]
    cdef size_t at = 0
    if not mu > 0.0:
        raise ValueError(f"mu must be positive; got {mu}")
    doubles(&at, together * (k + options))
    indices(&at, max(together, k))
    new_temper_room(loss, &at)
    cdef Scratch own = Scratch(at)
    at = <size_t> own.at
    f, own_p, listed = doubles(&at, together * k), doubles(&at, together * options), indices(&at, max(together, k))
    room = new_temper_room(loss, &at)
    given.Q = NULL if Q is None else <double*> matrix_out(Q, "Q", DOUBLE, n, k)
    take_given(&given, loss, n, codes, vertices, omega)
    loss = loss.own(n)
    sums[0] = sums[1] = sums[2] = 0.0
    with nogil:
        while first < n:
            size, p = min(together, n - first), own_p
            if all_p != NULL:
                p = all_p + first * options
            else:
                for i in range(size * options):
                    p[i] = NAN
            rows.put_scores(first, size, w, k, f, listed)
            temper_rows(loss, &given, first, size, mu, f, p, &room, sums)
            rows.put_moments(first, size, f, k, moments, listed)
            first += size
    return sums[0], sums[1], sums[2]
