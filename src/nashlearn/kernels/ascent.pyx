"""Block dual ascent: one example at a time, its whole label distribution at once, exactly; any loss, any rows.

With shares ``s_i = omega_i / alpha``, a visit maximises the dual over one ``q_i``: the proximal step of the game at
``g = W x_i + a q_i`` with ``a = s_i |x_i|^2``, so every visit is optimal and the dual never falls.
"""

from libc.math cimport fabs
from nashlearn.kernels.checks cimport (
    DOUBLE,
    INDEX,
    MARK,
    extent,
    matrix,
    matrix_out,
    rising,
    vector,
    vector_out,
    within,
)
from nashlearn.kernels.loss cimport Loss
from nashlearn.kernels.rows cimport Rows
from nashlearn.kernels.scratch cimport Scratch, doubles, indices

cdef double _STILL = 1e-12  # a strategy that moves less than this has not moved
cdef enum:
    _PATIENCE = 3  # visits without a move after which an example leaves the inner sweeps


cdef struct Desk:  # what visits work on
    double* g  # the argument of the last proximal step, of as many classes as it had
    double* q
    double* p
    double* step
    Py_ssize_t* moving
    Py_ssize_t* everyone
    void* room
    double* W
    double* Q
    const double* shares
    const double* sqnorms
    Py_ssize_t k


cdef size_t _lay(Desk* desk, Loss loss, size_t at) noexcept nogil:
    cdef size_t begin = at
    desk.k = loss.k
    desk.g, desk.q, desk.step, desk.p = (
        doubles(&at, loss.k), doubles(&at, loss.k), doubles(&at, loss.k), doubles(&at, loss.options)
    )
    desk.moving, desk.everyone = indices(&at, loss.k), indices(&at, loss.k)
    desk.room = <void*> at
    return at - begin + loss.room_size()


cdef Scratch _seat(Desk* desk, Loss loss, Rows rows, object W, object Q, object shares, object sqnorms):
    """Check the arrays of a problem and lay a desk for visits, in the memory that is returned."""
    cdef Scratch memory = Scratch(_lay(desk, loss, 0))
    cdef Py_ssize_t c
    _lay(desk, loss, <size_t> memory.at)
    desk.W = rows.weights(W, loss.k)
    desk.Q = <double*> matrix_out(Q, "Q", DOUBLE, rows.n, loss.k)
    desk.shares = <const double*> vector(shares, "shares", DOUBLE, rows.n)
    desk.sqnorms = <const double*> vector(sqnorms, "sqnorms", DOUBLE, rows.n)
    for c in range(loss.k):
        desk.everyone[c] = c
    return memory


cdef double _visit(
    Loss loss, Rows rows, Desk* desk, Py_ssize_t i, const Py_ssize_t* classes, Py_ssize_t m, double least
) noexcept nogil:
    """Maximise the dual over example ``i`` and ``m`` classes; a lower bound of the gain, times alpha."""
    cdef double share = desk.shares[i], a = share * desk.sqnorms[i], total = 0.0, largest = 0.0, change, won
    cdef Py_ssize_t c, n_moving = 0
    cdef double* g = desk.g
    cdef double* q = desk.q
    cdef double* Q = desk.Q + i * desk.k
    loss.at(i)
    if a == 0.0:  # no feature: the scores are 0 whatever the weights, so the game is solved once
        for c in range(desk.k):
            g[c] = 0.0
        loss.begin(desk.room)
        loss.equilibrium(g, Q, desk.p, desk.room)
        return 0.0
    rows.scores(i, desk.W, desk.k, classes, m, g)
    for c in range(m):
        q[c] = Q[classes[c]]
        g[c] += a * q[c]
    loss.prox(m, g, a, q, desk.p, desk.room)
    for c in range(m):
        change = Q[classes[c]] - q[c]
        if change != 0.0:
            total += change * change
            largest = max(largest, fabs(change))
            desk.step[n_moving] = share * change
            desk.moving[n_moving] = classes[c]
            n_moving += 1
    won = 0.5 * a * share * total
    if largest <= _STILL or won < least:
        return 0.0
    for c in range(m):
        Q[classes[c]] = q[c]
    rows.step(i, desk.W, desk.k, desk.moving, n_moving, desk.step)
    return won


def sweep(
    Loss loss not None, Rows rows not None, W, Q, shares, sqnorms, order, moved, near, double least
):
    """Visit the examples of ``order`` once, all labels; mark what moved and who contends. Returns the gain.

    ``W`` are the weights as the rows want them and ``Q`` (n, k) the dual point, which both move; moves that win less
    than ``least`` are put off. Cost: a product with the weights and a proximal step for each example.
    """
    cdef Desk desk
    cdef Scratch memory = _seat(&desk, loss, rows, W, Q, shares, sqnorms)
    cdef Py_ssize_t e, i, k = loss.k, size = extent(order, "order", 0)
    cdef const Py_ssize_t* listed = <const Py_ssize_t*> vector(order, "order", INDEX, size)
    cdef unsigned char* marks = <unsigned char*> vector_out(moved, "moved", MARK, rows.n)
    cdef unsigned char* close = <unsigned char*> matrix_out(near, "near", MARK, rows.n, k)
    cdef double gain = 0.0, won
    within(listed, size, rows.n, "order")
    loss = loss.own(rows.n)
    with nogil:
        for e in range(size):
            i = listed[e]
            won = _visit(loss, rows, &desk, i, desk.everyone, k, least)
            marks[i] = won > 0.0
            gain += won
            if marks[i]:
                loss.contenders(desk.g, desk.shares[i] * desk.sqnorms[i], desk.q, close + i * k)
    return gain


def inner_sweeps(
    Loss loss not None, Rows rows not None, W, Q, shares, sqnorms, active, first, classes, double enough, double part,
    double budget, double least
):
    """Sweep over ``active``, each with its list of classes, and return the work.

    The classes of entry ``e`` are ``classes[first[e]:first[e + 1]]``. Ends when a pass gains less than ``enough``, or
    less than the given part of the first pass. Work is counted in visits of an example with all its labels; a good part
    of a visit does not depend on them.
    """
    cdef Desk desk
    cdef Scratch memory = _seat(&desk, loss, rows, W, Q, shares, sqnorms)
    cdef Py_ssize_t s, e, m, kept, size = extent(active, "active", 0), listed = extent(classes, "classes", 0)
    cdef const Py_ssize_t* examples = <const Py_ssize_t*> vector(active, "active", INDEX, size)
    cdef const Py_ssize_t* begin = <const Py_ssize_t*> vector(first, "first", INDEX, size + 1)
    cdef const Py_ssize_t* labels = <const Py_ssize_t*> vector(classes, "classes", INDEX, listed)
    cdef Scratch own = Scratch(2 * size * sizeof(Py_ssize_t))
    cdef Py_ssize_t* entries = <Py_ssize_t*> own.at
    cdef Py_ssize_t* idle = entries + size
    cdef double gain, won, work = 0.0
    within(examples, size, rows.n, "active")
    within(labels, listed, loss.k, "classes")
    rising(begin, size, listed, "first")
    for e in range(size):
        if begin[e + 1] - begin[e] > loss.k:
            raise ValueError(f"first must leave at most {loss.k} classes to an example")
        if begin[e + 1] - begin[e] < loss.k and not loss.partial:
            raise ValueError(f"first must leave all {loss.k} classes to an example: the loss takes no others")
        entries[e], idle[e] = e, 0
    loss = loss.own(rows.n)
    with nogil:
        while size > 0 and work < budget:
            gain, kept = 0.0, 0
            for s in range(size):
                e = entries[s]
                m = begin[e + 1] - begin[e]
                won = _visit(loss, rows, &desk, examples[e], labels + begin[e], m, least)
                gain += won
                work += 0.4 + 0.6 * m / loss.k
                idle[e] = 0 if won > 0.0 else idle[e] + 1
                if idle[e] < _PATIENCE:
                    entries[kept] = e
                    kept += 1
            size = kept
            if gain < enough:
                break
            enough = max(enough, part * gain)
    return work


def rank(Loss loss not None, scores, Q, shares, diagonal, near, promise):
    """Proximal step of every example at its scores (n, k), none of which is taken.

    Who contends goes into ``near``, the support of ``Q`` included, and a lower bound of the gain, times alpha, into
    ``promise``: ``a/2 |change of q|^2``, since the gain itself cancels near the solution.
    """
    cdef Py_ssize_t i, c, k = loss.k, n = extent(scores, "scores", 0)
    cdef const double* f = <const double*> matrix(scores, "scores", DOUBLE, n, k)
    cdef const double* now = <const double*> matrix(Q, "Q", DOUBLE, n, k)
    cdef const double* share = <const double*> vector(shares, "shares", DOUBLE, n)
    cdef const double* size = <const double*> vector(diagonal, "diagonal", DOUBLE, n)
    cdef unsigned char* close = <unsigned char*> matrix_out(near, "near", MARK, n, k)
    cdef double* won = <double*> vector_out(promise, "promise", DOUBLE, n)
    cdef Desk desk
    cdef Scratch memory = Scratch(_lay(&desk, loss, 0))
    cdef double a, change
    _lay(&desk, loss, <size_t> memory.at)
    loss = loss.own(n)
    with nogil:
        for i in range(n):
            loss.at(i)
            a = share[i] * size[i]
            won[i] = 0.0
            if a > 0.0:
                for c in range(k):
                    desk.q[c] = now[i * k + c]
                    desk.g[c] = f[i * k + c] + a * desk.q[c]
                loss.prox(k, desk.g, a, desk.q, desk.p, desk.room)
                for c in range(k):
                    change = desk.q[c] - now[i * k + c]
                    won[i] += 0.5 * a * share[i] * (change * change)
                loss.contenders(desk.g, a, desk.q, close + i * k)
                for c in range(k):
                    close[i * k + c] |= now[i * k + c] > 0.0
