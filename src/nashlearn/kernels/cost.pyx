"""The game of any cost matrix, by the simplex method and the proximal step of the core.

Each row of scores starts from the basis of the row before where that is better than a pure strategy: about a
microsecond for ten labels, and less where neighbouring rows are alike.
"""

from libc.math cimport INFINITY, NAN, isnan
from libc.string cimport memset
from nashlearn.kernels.checks cimport DOUBLE, INDEX, matrix, vector, within
from nashlearn.kernels.core_simplex cimport Core, new_core, optimise
from nashlearn.kernels.matrix_temper cimport Temper, begin_at_one, improve, new_temper, respond, temper_lowest, temper_mixture, turn
from nashlearn.kernels.quadratic cimport MatrixLoss, prox_room
from nashlearn.kernels.simd cimport simd_dot, simd_top
from nashlearn.kernels.vectors cimport vec_add

cdef double _COLD = 0.05  # where there is so little entropy, the exact game is a better start than one option,
cdef double _FAR = 3.0  # and than a strategy whose gap exceeds so many times the entropy's weight


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
        new_core(self.options, self.k, &self.core_size)

    def __reduce__(self):
        floor, lowest, tilt, rows, columns = self.kept
        return Cost, (self.L, floor, lowest, tilt, self.scale, rows, columns)

    cdef size_t room_size(self) noexcept nogil:
        cdef size_t after = 0
        new_temper(self.options, self.k, &after)
        return self.core_size + max(prox_room(self.options, self.k), after)

    cdef Core core(self, void* room) noexcept nogil:
        cdef size_t at = <size_t> room
        return new_core(self.options, self.k, &at)

    cdef void begin(self, void* room) noexcept nogil:
        cdef Core c = self.core(room)
        c.state[0] = c.state[1] = 0

    cdef double equilibrium(self, const double* f, double* q, double* p, void* room) noexcept nogil:
        cdef double top = simd_top(f, self.k), best
        cdef Py_ssize_t j, m
        cdef Core c = self.core(room)
        if isnan(top):
            for j in range(self.k):
                q[j] = NAN
            for j in range(self.options):
                p[j] = NAN
            return NAN
        best = self.scaled(f, top, c.f)
        for j in range(self.k):  # below -2 no label can gain; the clip admits -inf to an old basis
            c.f[j] = max(c.f[j], -2.0)
        optimise(&self.matrix, &c)
        memset(q, 0, self.k * sizeof(double))
        memset(p, 0, self.options * sizeof(double))
        for m in range(c.state[0]):
            q[c.R[m]] = max(c.N[(m + 1) * c.most], 0.0)
            p[c.S[m]] = max(-c.y[m + 1], 0.0)
        return top + (best + self.scale * c.y[0])

    cdef double gain(self, const double* p, double* reward) noexcept nogil:
        cdef Py_ssize_t i
        for i in range(self.options):
            if p[i] > 0.0:
                vec_add(self.entries + i * self.k, p[i], self.k, reward)
        return 0.0

    cdef double risk(self, const double* q, void* room) noexcept nogil:
        cdef double* cost = <double*> self.beyond(room)
        temper_mixture(self.matrix.columns, q, self.k, self.options, cost)
        return simd_dot(self.floor, q, self.k) + self.scale * cost[temper_lowest(cost, self.options)]

    cdef void prox(self, Py_ssize_t m, const double* g, double a, double* q, double* p, void* room) noexcept nogil:
        MatrixLoss.prox(self, m, g, a, q, p, self.beyond(room))

    cdef Py_ssize_t tangent(
        self, double a, const double* q, const unsigned char* tight, double* jacobian, void* room
    ) noexcept nogil:
        return MatrixLoss.tangent(self, a, q, tight, jacobian, self.beyond(room))

    cdef void* beyond(self, void* room) noexcept nogil:
        """The room behind that of the core, which an equilibrium leaves for the next."""
        return <char*> room + self.core_size

    cdef double scaled(self, const double* f, double top, double* out) noexcept nogil:
        """Write the scores and what a column costs at least over the scale, the largest 0; return what was taken off."""
        cdef double best = -INFINITY, unit = 1.0 / self.scale
        cdef Py_ssize_t j
        for j in range(self.k):
            out[j] = (f[j] - top) + self.floor[j]
            best = max(best, out[j])
        for j in range(self.k):
            out[j] = (out[j] - best) * unit
        return best

    cdef void temper(self, const double* f, double mu, double* p, void* room) noexcept nogil:
        cdef size_t at = <size_t> self.beyond(room)
        cdef Temper t = new_temper(self.options, self.k, &at)
        cdef double m = mu / self.scale, gap = INFINITY
        cdef Py_ssize_t i
        cdef bint known = False
        self.scaled(f, simd_top(f, self.k), t.f)
        for i in range(self.options):
            if p[i] != p[0] or p[i] == 1.0:
                known = True
                break
        if known:
            gap = respond(&self.matrix, &t, m, p)
        if m < _COLD and gap > _FAR * m:
            self.begin_exactly(&t, p, room)
            gap = respond(&self.matrix, &t, m, p)
        elif gap == INFINITY:
            gap = begin_at_one(&self.matrix, &t, m, p)
        improve(&self.matrix, &t, m, gap, p)

    cdef void begin_exactly(self, const Temper* t, double* p, void* room) noexcept nogil:
        """Write the ``p`` of the game without entropy."""
        cdef Core c = self.core(room)
        cdef Py_ssize_t j, m
        cdef double mass = 0.0
        for j in range(self.k):
            c.f[j] = max(t.f[j], -2.0)
        optimise(&self.matrix, &c)
        memset(p, 0, self.options * sizeof(double))
        for m in range(c.state[0]):
            p[c.S[m]] = max(-c.y[m + 1], 0.0)
            mass += p[c.S[m]]
        for j in range(self.options):
            p[j] /= mass

    cdef void turn(self, double mu, const double* q, const double* p, double* v, void* room) noexcept nogil:
        cdef size_t at = <size_t> self.beyond(room)
        cdef Temper t = new_temper(self.options, self.k, &at)
        turn(&self.matrix, &t, mu, q, p, v)
