"""Greedy dual ascent on a working set: visits of examples that promise most, while what they share is held apart.

A visit maximises the dual over one example, as in :mod:`nashlearn.kernels.ascent`. Here a pass looks at all examples
and takes the steps of those alone that win a good part of the most that the pass before has seen. Support vectors of a
kernel hinder each other, and so a fraction of the visits of a plain sweep does the same. Cost: a proximal step for each
look, and a row of the matrix for each class that moves.

What all examples have in common, an intercept and the mean of a wide kernel, is a direction in which single visits can
only creep along. With the kernel's mean ``e_i = 1/n sum_j K_ij / T``, ``T`` that of all entries, ``K - T e e'`` is
positive semidefinite as ``K`` is. The part ``B/2 |s|^2`` of the dual, where ``s = sum_i e_i c_i`` and ``B = T - rho``,
is split off as ``max_t <t, s> - |t|^2 / 2B``, and ``t`` follows the sum after each pass by a proximal step,
``t <- (t + rho s) B / (B + rho)`` [rockafellar1976]_. The matrix of the rows stays as it is, without ``B e e'`` taken off
and without the constant that an intercept adds to it: both follow from two sums of coefficients.

A step moves the scores of all examples, but only those of examples that are looked at soon matter soon. So a pass goes
by some hundred examples whose places lie together: a step moves their scores at once, and those of the others once all
of these have been visited, by many rows at a time and in threads.
"""

from libc.string cimport memset
from nashlearn.kernels.checks cimport DOUBLE, INDEX, extent, matrix_out, rising, vector, vector_out, within
from nashlearn.kernels.loss cimport Loss
from nashlearn.kernels.rows cimport Square
from nashlearn.kernels.scratch cimport Scratch, doubles, indices

cdef double _GOOD = 0.2  # part of the most promising gain that a visit must win
cdef double _POOR = 0.2  # part of that below which an example is not looked at
cdef double _STILL = 1e-12  # a strategy that moves less than this has not moved
cdef double _ROUNDED = 1e-14  # probabilities this close to 0 or 1 are those
cdef double _ENDLESS = 1e4  # looks at each example, whatever the budget
cdef double _SHARED = 5e5  # scores to be moved that are worth threads
cdef Py_ssize_t _PAUSE = 3  # for so many passes, twice as many each time, and one,
cdef Py_ssize_t _LONG = 31  # up to this

cdef enum:
    _NEAR = 512  # entries whose scores steps reach at once
    _PART = 1024  # others to whom a thread brings them


cdef struct Desk:  # what visits work on
    double* g
    double* q
    double* p
    double* step
    Py_ssize_t* moving
    Py_ssize_t* pause
    Py_ssize_t* idle
    void* room
    double* w
    double* dual
    const double* share
    const double* sqnorm
    const double* shared
    double* apart
    double* plain
    double* total
    double bias
    double free


cdef size_t _lay(Desk* desk, Loss loss, Py_ssize_t size, size_t at) noexcept nogil:
    cdef size_t begin = at
    desk.g, desk.q, desk.step, desk.p = (
        doubles(&at, loss.k), doubles(&at, loss.k), doubles(&at, loss.k), doubles(&at, loss.options)
    )
    desk.moving, desk.pause, desk.idle = indices(&at, loss.k), indices(&at, size), indices(&at, size)
    desk.room = <void*> at
    return at - begin + loss.room_size()


cdef inline double _snapped(double q) noexcept nogil:
    """A probability without the rounding that would keep an example among the support vectors."""
    return 0.0 if q < _ROUNDED else 1.0 if q > 1.0 - _ROUNDED else q


cdef double _visit(
    Desk* desk, Loss loss, Square rows, Py_ssize_t i, const Py_ssize_t* classes, Py_ssize_t m, double least
) noexcept nogil:
    """What the best step of an example wins, which is taken if that is no less than ``least``."""
    cdef double a = desk.share[i] * desk.sqnorm[i], won = 0.0, change
    cdef double* now = desk.dual + i * loss.k
    cdef Py_ssize_t c, moving = 0
    if m == 0 or not a > 0.0:
        return 0.0
    loss.at(i)
    rows.scores(i, desk.w, loss.k, classes, m, desk.g)
    for c in range(m):
        desk.q[c] = now[classes[c]]
        desk.g[c] += desk.shared[i] * (desk.apart[classes[c]] - desk.free * desk.total[classes[c]])
        desk.g[c] += desk.bias * desk.plain[classes[c]] + a * desk.q[c]
    loss.prox(m, desk.g, a, desk.q, desk.p, desk.room)
    for c in range(m):
        desk.q[c] = _snapped(desk.q[c])
        change = now[classes[c]] - desk.q[c]
        won += change * change
    won = 0.5 * a * desk.share[i] * won if won > _STILL * _STILL else 0.0
    if won < least or won == 0.0:
        return won
    for c in range(m):
        change = desk.share[i] * (now[classes[c]] - desk.q[c])
        if change != 0.0:
            desk.step[moving], desk.moving[moving] = change, classes[c]
            desk.plain[classes[c]] += change
            desk.total[classes[c]] += desk.shared[i] * change
            now[classes[c]] = desk.q[c]
            moving += 1
    rows.step(i, desk.w, loss.k, desk.moving, moving, desk.step)
    return won


cdef inline void _range(
    const Py_ssize_t* examples, Py_ssize_t begin, Py_ssize_t end, Py_ssize_t* low, Py_ssize_t* high
) noexcept nogil:
    """Where the examples of some entries lie."""
    cdef Py_ssize_t e
    low[0], high[0] = examples[begin], examples[begin] + 1
    for e in range(begin + 1, end):
        low[0], high[0] = min(low[0], examples[e]), max(high[0], examples[e] + 1)


cdef int _paid(Square rows, run, pay) except -1 nogil:
    """Move the scores that steps have not reached, many of them in threads."""
    cdef Py_ssize_t owed = rows.owed()
    if <double> owed * rows.n >= _SHARED:
        with gil:
            run(pay, [(start, min(start + _PART, rows.n)) for start in range(0, rows.n, _PART)])
    elif owed > 0:
        rows.pay(0, rows.n)
    rows.forget()
    return 0


def greedy_passes(
    Loss loss not None, Square rows not None, W, Q, shares, sqnorms, active, first, classes, common, held, sums,
    double bias, double free, double rho, double enough, double part, double budget, run
):
    """Pass over ``active``, each with its list of classes; returns the looks that were taken, and what they have won.

    The classes of entry ``e`` are ``classes[first[e]:first[e + 1]]``. ``W`` are the weights as the rows want them and
    ``Q`` (n, k) the dual point, which both move. Ends when the most promising gain, times alpha, is below ``enough``,
    or below ``part`` of that of the first pass, or after ``budget`` looks, 10,000 for each entry at most. The matrix is
    that of the rows plus ``bias``. Where ``free``, which is ``B``, is positive, ``common`` (n) are the ``e_i``; what
    ``t`` is beside the weights is kept up in ``held`` (k). Changes of the plain sum of coefficients are added to
    ``sums[0]`` and those of ``s`` to ``sums[1]``, (2, k): the weights do not have them. ``run`` shares work among
    threads (:mod:`nashlearn.solvers.threads`); results do not depend on how many there are.
    """
    cdef Py_ssize_t e, at, near, last, low, high, n = rows.n, k = loss.k
    cdef Py_ssize_t size = extent(active, "active", 0), listed = extent(classes, "classes", 0)
    cdef const Py_ssize_t* examples = <const Py_ssize_t*> vector(active, "active", INDEX, size)
    cdef const Py_ssize_t* begin = <const Py_ssize_t*> vector(first, "first", INDEX, size + 1)
    cdef const Py_ssize_t* labels = <const Py_ssize_t*> vector(classes, "classes", INDEX, listed)
    cdef Desk desk
    cdef Scratch memory = Scratch(_lay(&desk, loss, size, 0))
    cdef double won, most, least = 0.0, looks = 0.0, gained = 0.0
    cdef bint begun = False
    _lay(&desk, loss, size, <size_t> memory.at)
    desk.w, desk.dual = rows.weights(W, k), <double*> matrix_out(Q, "Q", DOUBLE, n, k)
    desk.share = <const double*> vector(shares, "shares", DOUBLE, n)
    desk.sqnorm = <const double*> vector(sqnorms, "sqnorms", DOUBLE, n)
    desk.shared = <const double*> vector(common, "common", DOUBLE, n)
    desk.apart = <double*> vector_out(held, "held", DOUBLE, k)
    desk.plain = <double*> matrix_out(sums, "sums", DOUBLE, 2, k)
    desk.total, desk.bias, desk.free = desk.plain + k, bias, free
    within(examples, size, n, "active")
    within(labels, listed, k, "classes")
    rising(begin, size, listed, "first")
    for e in range(size):
        if begin[e + 1] - begin[e] > k:
            raise ValueError(f"first must leave at most {k} classes to an example")
        if begin[e + 1] - begin[e] < k and not loss.partial:
            raise ValueError(f"first must leave all {k} classes to an example: the loss takes no others")
        desk.pause[e] = desk.idle[e] = 0
    def pay(Py_ssize_t start, Py_ssize_t stop):
        with nogil:
            rows.pay(start, stop)

    rows.make_room(_NEAR)
    budget = min(budget, _ENDLESS * size)
    loss = loss.own(n)
    with nogil:
        while size > 0 and looks < budget:
            most, near = 0.0, 0
            while near < size:
                at, near = near, min(near + _NEAR, size)
                _range(examples, at, near, &low, &high)
                rows.reach(low, high)
                for e in range(at, near):
                    if desk.pause[e] > 0:
                        desk.pause[e] -= 1
                        continue
                    looks += 1.0
                    won = _visit(&desk, loss, rows, examples[e], labels + begin[e], begin[e + 1] - begin[e], least)
                    most = max(most, won)
                    if won < _POOR * least:
                        desk.pause[e] = desk.idle[e] = min(max(2 * desk.idle[e] + 1, _PAUSE), _LONG)
                    else:
                        desk.idle[e] = 0
                    gained += won if won >= least else 0.0
                _paid(rows, run, pay)
            if not begun:
                enough, begun = max(enough, part * most, 0.0), True
            if not most > enough:
                if least == 0.0 or most == 0.0:
                    break
                memset(desk.pause, 0, size * sizeof(Py_ssize_t))  # a last look at everybody
            least = _GOOD * most if most > enough else 0.0
            if free > 0.0:
                for e in range(k):
                    desk.apart[e] = (desk.apart[e] + rho * desk.total[e]) * (free / (free + rho))
    return looks, gained
