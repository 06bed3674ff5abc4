"""The game of any cost matrix, by the simplex method and the proximal step of the core.

Each row of scores starts from the basis of the row before where that is better than a pure strategy: about a
microsecond for ten labels, and less where neighbouring rows are alike.
"""

from libc.math cimport INFINITY, NAN, isnan
from libc.string cimport memset
from nashlearn.kernels.checks cimport DOUBLE, INDEX, matrix, vector, within
from nashlearn.kernels.core_simplex cimport Core, new_core, optimise
from nashlearn.kernels.quadratic cimport MatrixLoss, prox_room
from nashlearn.kernels.simd cimport simd_top


cdef class Cost(MatrixLoss):
    """The loss of a cost matrix; the parameters are those of :class:`nashlearn.solvers.matrix_game.Cost`."""

    def __cinit__(self, L, floor, lowest, tilt, double scale, rows, columns):
        self.take(L)
        self.kept = floor, lowest, tilt, rows, columns
        self.scale = scale
        self.floor = <const double*> vector(floor, "floor", DOUBLE, self.k)
        self.matrix.lowest = <const Py_ssize_t*> vector(lowest, "lowest", INDEX, self.k)
        self.matrix.tilt = <const double*> vector(tilt, "tilt", DOUBLE, self.options)
        self.matrix.rows = <const double*> matrix(rows, "rows", DOUBLE, self.options, self.k)
        self.matrix.columns = <const double*> matrix(columns, "columns", DOUBLE, self.k, self.options)
        within(self.matrix.lowest, self.k, self.options, "lowest")

    def __reduce__(self):
        floor, lowest, tilt, rows, columns = self.kept
        return Cost, (self.L, floor, lowest, tilt, self.scale, rows, columns)

    cdef size_t room_size(self) noexcept nogil:
        cdef size_t at = 0
        new_core(self.options, self.k, &at)
        return at + prox_room(self.options, self.k)

    cdef Core core(self, void* room) noexcept nogil:
        cdef size_t at = <size_t> room
        return new_core(self.options, self.k, &at)

    cdef void begin(self, void* room) noexcept nogil:
        cdef Core c = self.core(room)
        c.state[0] = c.state[1] = 0

    cdef double equilibrium(self, const double* f, double* q, double* p, void* room) noexcept nogil:
        cdef double top = simd_top(f, self.k), best = -INFINITY
        cdef Py_ssize_t j, m
        cdef Core c = self.core(room)
        if isnan(top):
            for j in range(self.k):
                q[j] = NAN
            for j in range(self.options):
                p[j] = NAN
            return NAN
        for j in range(self.k):
            c.f[j] = (f[j] - top) + self.floor[j]
            best = max(best, c.f[j])
        for j in range(self.k):  # below -2 no label can gain; the clip admits -inf to an old basis
            c.f[j] = max((c.f[j] - best) / self.scale, -2.0)
        optimise(&self.matrix, &c)
        memset(q, 0, self.k * sizeof(double))
        memset(p, 0, self.options * sizeof(double))
        for m in range(c.state[0]):
            q[c.R[m]] = max(c.N[(m + 1) * c.most], 0.0)
            p[c.S[m]] = max(-c.y[m + 1], 0.0)
        return top + (best + self.scale * c.y[0])

    cdef double gain(self, const double* p, double* reward) noexcept nogil:
        cdef Py_ssize_t i, j
        cdef const double* row
        for i in range(self.options):
            if p[i] > 0.0:
                row = self.entries + i * self.k
                for j in range(self.k):
                    reward[j] += p[i] * row[j]
        return 0.0

    cdef double risk(self, const double* q, void* room) noexcept nogil:
        cdef Core c = self.core(room)
        cdef double floor = 0.0, lowest = INFINITY
        cdef double* cost = c.rate
        cdef const double* column
        cdef Py_ssize_t i, j
        memset(cost, 0, self.options * sizeof(double))
        for j in range(self.k):
            if q[j] > 0.0:
                floor += q[j] * self.floor[j]
                column = self.matrix.columns + j * self.options
                for i in range(self.options):
                    cost[i] += q[j] * column[i]
        for i in range(self.options):
            if isnan(cost[i]):
                return NAN
            lowest = min(lowest, cost[i])
        return floor + self.scale * lowest

    cdef void prox(self, Py_ssize_t m, const double* g, double a, double* q, double* p, void* room) noexcept nogil:
        MatrixLoss.prox(self, m, g, a, q, p, self.beyond(room))

    cdef Py_ssize_t tangent(
        self, double a, const double* q, const unsigned char* tight, double* jacobian, void* room
    ) noexcept nogil:
        return MatrixLoss.tangent(self, a, q, tight, jacobian, self.beyond(room))

    cdef void* beyond(self, void* room) noexcept nogil:
        """The room behind that of the core, which an equilibrium leaves for the next."""
        cdef size_t at = <size_t> room
        new_core(self.options, self.k, &at)
        return <void*> at
