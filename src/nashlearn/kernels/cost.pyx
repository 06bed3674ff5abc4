"""The game of any cost matrix, by the simplex method and the proximal step of the core.

Each row of scores starts from the basis of the row before where that is better than a pure strategy: about a
microsecond for ten labels, and less where neighbouring rows are alike.
"""

from libc.math cimport INFINITY, NAN, fabs, isnan, log
from libc.string cimport memset
from nashlearn.kernels.checks cimport DOUBLE, INDEX, matrix, vector, within
from nashlearn.kernels.core_simplex cimport Core, new_core, optimise
from nashlearn.kernels.blocks cimport BLOCK
from nashlearn.kernels.loss cimport Certificate, lose_row
from nashlearn.kernels.matrix_blocks cimport BlockMatrix, MatrixBlock, matrix_block_play, matrix_block_room, matrix_block_row
from nashlearn.kernels.matrix_temper cimport (
    Temper,
    begin_at_one,
    closed_gap,
    improve,
    new_temper,
    respond,
    taken,
    temper_lowest,
    temper_mixture,
    turn,
)
from nashlearn.kernels.quadratic cimport MatrixLoss, prox_room
from nashlearn.kernels.simd cimport simd_dot, simd_top
from nashlearn.kernels.vectors cimport vec_add, vec_scale

cdef double _COLD = 0.05  # where there is so little entropy, the exact game is a better start than one option,
cdef double _STRAY = 1e-14  # by which the shares of a strategy may miss a sum of 1
cdef double _FAR = 3.0  # and than a strategy whose gap exceeds so many times the entropy's weight

cdef enum:
    _SHORT = 64  # rows and columns of more entries fill the lanes by themselves


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
        self.scaled(f, simd_top(f, self.k), t.f)
        self.settle(mu / self.scale, self.opening(mu / self.scale, p, &t), p, &t, room)

    cdef double opening(self, double m, double* p, Temper* t) noexcept nogil:
        """Find the reply to ``p`` and return their gap over the scale, INFINITY where ``p`` says nothing."""
        if self.begins(p):
            return respond(&self.matrix, t, m, p)
        return INFINITY

    cdef double settle(self, double m, double gap, double* p, Temper* t, void* room) noexcept nogil:
        """Solve the game of the scores in ``t`` from ``p``, whose gap is known; return what is left of that."""
        if m < _COLD and gap > _FAR * m:
            self.begin_exactly(t, p, room)
            gap = respond(&self.matrix, t, m, p)
        elif gap == INFINITY:
            gap = begin_at_one(&self.matrix, t, m, p)
        return improve(&self.matrix, t, m, gap, p)

    cdef size_t play_size(self) noexcept nogil:
        cdef size_t block = 0
        if self.k <= _SHORT and self.options <= _SHORT:
            block = matrix_block_room(self.options, self.k) * sizeof(double)
        return self.room_size() + block

    cdef void play(
        self, Py_ssize_t n, const double* f, double mu, double* p, double* q, Certificate* found, void* room
    ) noexcept nogil:
        cdef MatrixBlock block
        cdef BlockMatrix L
        cdef size_t at = <size_t> self.beyond(room)
        cdef Temper t = new_temper(self.options, self.k, &at)
        cdef double m = mu / self.scale, best, gap
        cdef Py_ssize_t i, size
        cdef bint short = self.k <= _SHORT and self.options <= _SHORT
        L.rows, L.floor, L.scale, L.options, L.k = self.matrix.rows, self.floor, self.scale, self.options, self.k
        self.begin(room)
        while n > 0:
            size = min(n, <Py_ssize_t> BLOCK)
            if short:
                matrix_block_play(
                    &L, f, size, m, closed_gap(m), m >= _COLD, p, q, &block, <double*> (<char*> room + self.room_size())
                )
            for i in range(size):
                if short:
                    found[i].top, found[i].upper, found[i].least = (
                        block.facts.top[i], block.facts.upper[i], block.facts.least[i]
                    )
                    found[i].gap, found[i].entropy = block.facts.gap[i], block.facts.entropy[i]
                else:
                    found[i].top = simd_top(f + i * self.k, self.k)
                if not fabs(found[i].top) < INFINITY:
                    lose_row(self.k, self.options, p + i * self.options, q + i * self.k, found + i)
                elif not short:
                    best = self.scaled(f + i * self.k, found[i].top, t.f)
                    gap = self.opening(m, p + i * self.options, &t)
                    gap = self.settle(m, gap, p + i * self.options, &t, room)
                    self.certify(f + i * self.k, mu, best, gap, &t, q + i * self.k, found + i)
                elif block.open[i] > 0.0:
                    matrix_block_row(&L, &block, i, t.f, t.z, t.q, t.c)
                    gap = block.left[i] if block.begun[i] > 0.0 else INFINITY
                    taken(&t, p + i * self.options)
                    gap = self.settle(m, gap, p + i * self.options, &t, room)
                    self.certify(f + i * self.k, mu, block.best[i], gap, &t, q + i * self.k, found + i)
            f, p, q = f + size * self.k, p + size * self.options, q + size * self.k
            found, n = found + size, n - size

    cdef void certify(
        self, const double* f, double mu, double best, double gap, const Temper* t, double* q, Certificate* found
    ) noexcept nogil:
        """The strategy ``q`` and the certificate of a row from what its solution has computed."""
        cdef Py_ssize_t j
        found.gap = self.scale * gap
        found.upper = best + (self.scale * t.top + mu * log(t.mass))
        found.least = simd_dot(self.floor, t.q, self.k) + self.scale * t.c[t.lowest]
        found.entropy = found.upper - found.gap
        for j in range(self.k):
            q[j] = t.q[j]
            if q[j] > 0.0:  # 0 * -inf must count as 0
                found.entropy -= q[j] * (f[j] - found.top)

    cdef bint begins(self, double* p) noexcept nogil:
        """Make ``p`` a strategy, up to rounding; return whether it says more than the uniform one, which knows nothing."""
        cdef double mass = 0.0
        cdef bint uneven = self.options == 1
        cdef Py_ssize_t i
        for i in range(self.options):
            uneven |= p[i] != p[0]
            mass += max(p[i], 0.0)
        if not 0.5 < mass < 2.0:
            return False
        for i in range(self.options):
            p[i] = max(p[i], 0.0)
        if fabs(mass - 1.0) > _STRAY:
            vec_scale(p, 1.0 / mass, self.options)
        return uneven

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
