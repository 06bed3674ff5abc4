"""Games of cost matrices that differ from row to row: row ``i`` has ``w_i L_i``, or ``w_i L`` of one matrix for all.

A call has a loss of its own, which goes from row to row: it copies a row's matrix, less the smallest entry of each
column and over the largest that is left, to where :class:`nashlearn.kernels.cost.AnyCost` reads its matrix. That costs
no more than one product with the matrix, and nothing of the size of all matrices is ever made.

An old basis means nothing to another matrix, so the simplex method begins anew with every row.
"""

from libc.math cimport INFINITY, fmod, sqrt
from nashlearn.kernels.checks cimport DOUBLE, cube, extent, vector
from nashlearn.kernels.cost cimport AnyCost
from nashlearn.kernels.loss cimport Certificate, Loss
from nashlearn.kernels.matrix_temper cimport Temper
from nashlearn.kernels.scratch cimport Scratch, doubles, indices

cdef double _LEAST = 1e-9  # the smallest unit of a row, relative to the largest cost of all


cdef class RowCosts(AnyCost):
    """The losses of ``factors_i costs_i``.

    Parameters
    ----------
    costs : ndarray (n, options, k) or (1, options, k)
    factors : ndarray (n,)
    largest : float
        The largest entry of all matrices, in absolute value; positive.
    """

    cdef readonly object costs
    cdef readonly object factors
    cdef readonly double largest
    cdef Scratch memory
    cdef const double* all
    cdef const double* factor
    cdef Py_ssize_t n, apart, here  # rows, entries from the matrix of one to that of the next, and the row that it is at
    cdef double* own_entries
    cdef double* own_floor
    cdef double* own_rows
    cdef double* own_columns
    cdef Py_ssize_t* own_lowest

    def __cinit__(self, costs, factors, double largest):
        cdef Py_ssize_t count = extent(costs, "costs", 0)
        self.options, self.k, self.n = extent(costs, "costs", 1), extent(costs, "costs", 2), extent(factors, "factors", 0)
        if self.options < 1 or self.k < 1:
            raise ValueError("costs must have at least one option and one label")
        if count != self.n and count != 1:
            raise ValueError(f"costs must have one matrix, or one for each of {self.n} factors; got {count}")
        self.all = <const double*> cube(costs, "costs", DOUBLE, count, self.options, self.k)
        self.factor = <const double*> vector(factors, "factors", DOUBLE, self.n)
        self.costs, self.factors, self.largest = costs, factors, largest
        if not 0.0 < largest < INFINITY:
            raise ValueError(f"largest must be positive and finite; got {largest}")
        self.apart = 0 if count == 1 else self.options * self.k
        self.measure()
        self.lay_out()
        if self.n > 0:
            self.at(0)

    def __reduce__(self):
        return RowCosts, (self.costs, self.factors, self.largest)

    cdef int lay_out(self) except -1:
        """Room for the matrix of one row."""
        cdef Py_ssize_t i, size = self.options * self.k
        cdef double* tilt
        cdef size_t at
        self.memory = Scratch((3 * size + self.k + self.options) * sizeof(double) + self.k * sizeof(Py_ssize_t))
        at = <size_t> self.memory.at
        self.own_entries, self.own_rows, self.own_columns = doubles(&at, size), doubles(&at, size), doubles(&at, size)
        self.own_floor, tilt, self.own_lowest = doubles(&at, self.k), doubles(&at, self.options), indices(&at, self.k)
        for i in range(self.options):
            tilt[i] = fmod((i + 1) * (0.5 * sqrt(5.0) - 0.5), 1.0)
        self.L, self.entries, self.floor = None, self.own_entries, self.own_floor
        self.matrix.rows, self.matrix.columns = self.own_rows, self.own_columns
        self.matrix.tilt, self.matrix.lowest = tilt, self.own_lowest
        return 0

    cdef Loss own(self, Py_ssize_t n):
        if n != self.n:
            raise ValueError(f"the loss has costs for {self.n} rows; got {n}")
        return RowCosts(self.costs, self.factors, self.largest)

    cdef void at(self, Py_ssize_t row) noexcept nogil:
        cdef const double* given = self.all + row * self.apart
        cdef double weight = self.factor[row], entry, most = 0.0
        cdef Py_ssize_t i, j, k = self.k, options = self.options
        self.here = row
        for j in range(k):
            self.own_floor[j], self.own_lowest[j] = INFINITY, 0  # also where no entry is a finite number
        for i in range(options):
            for j in range(k):
                entry = weight * given[i * k + j]
                self.own_entries[i * k + j] = entry
                if entry < self.own_floor[j] or (
                    entry == self.own_floor[j] and self.matrix.tilt[i] < self.matrix.tilt[self.own_lowest[j]]
                ):
                    self.own_floor[j], self.own_lowest[j] = entry, i
        for i in range(options * k):
            self.own_rows[i] = self.own_entries[i] - self.own_floor[i % k]
            most = max(most, self.own_rows[i])
        self.scale = max(most, _LEAST * self.largest) if most > 0.0 else self.largest
        for i in range(options):
            for j in range(k):
                entry = self.own_rows[i * k + j] / self.scale
                self.own_rows[i * k + j] = self.own_columns[j * options + i] = entry

    cdef double equilibrium(self, const double* f, double* q, double* p, void* room) noexcept nogil:
        self.begin(room)
        return AnyCost.equilibrium(self, f, q, p, room)

    cdef void begin_exactly(self, const Temper* t, double* p, void* room) noexcept nogil:
        self.begin(room)
        AnyCost.begin_exactly(self, t, p, room)

    cdef size_t play_size(self) noexcept nogil:
        return self.room_size()

    cdef void play(
        self, Py_ssize_t n, const double* f, double mu, double* p, double* q, Certificate* found, void* room
    ) noexcept nogil:
        cdef Py_ssize_t i, first = self.here
        for i in range(n):
            self.at(first + i)
            self.play_row(f, mu, p, q, found + i, room)
            f, p, q = f + self.k, p + self.options, q + self.k
