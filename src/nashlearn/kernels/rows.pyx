"""How training reads examples: what all kinds of rows have in common, and rows of a Gram matrix, never a copy of either.

Visits read or move the weights of the classes they are given only. An extension type has no member of a fused type, so
that it keeps an address and branches once a row. Sums are taken in any order.
"""

from libc.string cimport memset
from nashlearn.kernels.checks cimport DOUBLE, SINGLE, extent, is_single, matrix_out, rows_apart
from nashlearn.kernels.scratch cimport Scratch, doubles, indices


cdef class Rows:
    """Examples, one at a time, for compiled code."""

    cdef double* weights(self, object W, Py_ssize_t k) except NULL:
        raise NotImplementedError

    cdef void scores(
        self, Py_ssize_t i, const double* W, Py_ssize_t k, const Py_ssize_t* classes, Py_ssize_t m, double* f
    ) noexcept nogil:
        pass

    cdef void step(
        self, Py_ssize_t i, double* W, Py_ssize_t k, const Py_ssize_t* classes, Py_ssize_t m, const double* delta
    ) noexcept nogil:
        pass


cdef enum:
    _TILE = 512  # columns to which what is owed is added at once


cdef class Square(Rows):
    """A square Gram matrix, whose rows may lie apart; "weights" are the scores themselves, (k, n).

    They may be of single precision where the matrix is. A step need not reach all scores before they are read: those of
    the examples outside of a reach wait, and are then moved by many rows at once.
    """

    def __cinit__(self, K, *_):
        self.single, self.n = is_single(K, "K"), extent(K, "K", 0)
        self.at = rows_apart(K, "K", SINGLE if self.single else DOUBLE, self.n, self.n, &self.apart)
        self.K = K
        self.reach(0, self.n)

    def __reduce__(self):
        return type(self), (self.K,)

    cdef double* weights(self, object W, Py_ssize_t k) except NULL:
        self.light = self.single and is_single(W, "W")
        return self.keep(W, <double*> matrix_out(W, "W", SINGLE if self.light else DOUBLE, k, self.n), k)

    cdef void scores(
        self, Py_ssize_t i, const double* W, Py_ssize_t k, const Py_ssize_t* classes, Py_ssize_t m, double* f
    ) noexcept nogil:
        cdef Py_ssize_t c
        for c in range(m):
            f[c] = (<const float*> W)[classes[c] * self.n + i] if self.light else W[classes[c] * self.n + i]

    cdef void step(
        self, Py_ssize_t i, double* W, Py_ssize_t k, const Py_ssize_t* classes, Py_ssize_t m, const double* delta
    ) noexcept nogil:
        cdef Py_ssize_t c
        for c in range(m):
            self.add(i, classes[c], delta[c])

    cdef void add(self, Py_ssize_t i, Py_ssize_t function, double step) noexcept nogil:
        cdef Py_ssize_t at
        cdef Py_ssize_t* waiting
        self.columns(&i, &step, 1, function, self.first, self.last)
        if self.last - self.first < self.n:
            waiting = self.waiting + function
            at = function * self.room + waiting[0]
            self.owners[at], self.steps[at] = i, step
            waiting[0] += 1

    cdef void columns(
        self, const Py_ssize_t* rows, const double* steps, Py_ssize_t size, Py_ssize_t function, Py_ssize_t start,
        Py_ssize_t stop
    ) noexcept nogil:
        cdef Py_ssize_t at = function * self.n + start
        if self.light:
            add_rows(<const float*> self.at + start, self.apart, rows, steps, size, stop - start, <float*> self.W + at)
        elif self.single:
            add_rows(<const float*> self.at + start, self.apart, rows, steps, size, stop - start, self.W + at)
        else:
            add_rows(<const double*> self.at + start, self.apart, rows, steps, size, stop - start, self.W + at)

    cdef double* keep(self, object W, double* at, Py_ssize_t functions) noexcept:
        self.kept, self.W, self.functions, self.waiting = W, at, functions, NULL
        self.reach(0, self.n)
        return at

    cdef int make_room(self, Py_ssize_t room) except -1:
        cdef size_t at, size = self.functions * (room * (sizeof(Py_ssize_t) + sizeof(double)) + sizeof(Py_ssize_t))
        self.memory, self.room = Scratch(size), room
        at = <size_t> self.memory.at
        self.waiting, self.owners = indices(&at, self.functions), indices(&at, self.functions * room)
        self.steps = doubles(&at, self.functions * room)
        self.forget()
        return 0

    cdef void reach(self, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
        self.first, self.last = first, last

    cdef void pay(self, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
        cdef Py_ssize_t c, at, end
        while start < stop:  # a tile of the rows stays in the cache for all functions
            end = min(start + _TILE, stop)
            if start < self.first:
                end = min(end, self.first)
            elif start < self.last:
                start = self.last
                continue
            for c in range(self.functions):
                at = c * self.room
                self.columns(self.owners + at, self.steps + at, self.waiting[c], c, start, end)
            start = end

    cdef Py_ssize_t owed(self) noexcept nogil:
        cdef Py_ssize_t c, found = 0
        for c in range(self.functions):
            found += self.waiting[c]
        return found

    cdef void forget(self) noexcept nogil:
        memset(self.waiting, 0, self.functions * sizeof(Py_ssize_t))


cdef class SharedSquare(Square):
    """A square Gram matrix for one direction with offsets; "weights" are its n scores, then the offsets, (1, n + k).

    A score's own offset moves by ``offset`` times the step.
    """

    cdef double offset

    def __init__(self, K, double offset=1.0):
        self.offset = offset

    def __reduce__(self):
        return SharedSquare, (self.K, self.offset)

    cdef double* weights(self, object W, Py_ssize_t k) except NULL:
        return self.keep(W, <double*> matrix_out(W, "W", DOUBLE, 1, self.n + k), 1)

    cdef void scores(
        self, Py_ssize_t i, const double* W, Py_ssize_t k, const Py_ssize_t* classes, Py_ssize_t m, double* f
    ) noexcept nogil:
        cdef Py_ssize_t c
        for c in range(m):
            f[c] = W[i] + W[self.n + classes[c]]

    cdef void step(
        self, Py_ssize_t i, double* W, Py_ssize_t k, const Py_ssize_t* classes, Py_ssize_t m, const double* delta
    ) noexcept nogil:
        cdef double total = 0.0
        cdef Py_ssize_t c
        for c in range(m):
            W[self.n + classes[c]] += self.offset * delta[c]
            total += delta[c]
        self.add(i, 0, total)
