"""The game of any cost matrix, by the simplex method and the proximal step of the core.

Each row of scores starts from the basis of the row before where that is better than a pure strategy: about a
microsecond for ten labels, and less where neighbouring rows are alike.

The tempered game takes Newton's method on the options in play (``nashlearn.kernels.matrix_temper``). Rows of small
matrices are first tried in blocks, with the strategies that they begin with or their cheapest option: most are solved
by that where there is much entropy, at two to three times the price of a softmax.
"""

from libc.math cimport INFINITY, NAN, fabs, isnan, log
from libc.string cimport memset
from nashlearn.kernels.blocks cimport BLOCK
from nashlearn.kernels.checks cimport DOUBLE, INDEX, matrix, vector, within
from nashlearn.kernels.core_simplex cimport Core, new_core, optimise
from nashlearn.kernels.loss cimport Certificate, lose_row
from nashlearn.kernels.matrix_blocks cimport (
    BlockMatrix,
    MatrixBlock,
    matrix_block_lay_out,
    matrix_block_pairs,
    matrix_block_play,
    matrix_block_room,
    matrix_block_row,
    matrix_block_wait,
    matrix_block_write,
)
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
from nashlearn.kernels.pieces cimport Pieces, begin_at, few_pieces, no_pieces, pieces_room, step_in_piece
from nashlearn.kernels.quadratic cimport MatrixLoss, prox_room
from nashlearn.kernels.simd cimport simd_dot, simd_top
from nashlearn.kernels.vectors cimport vec_add, vec_scale

cdef double _COLD = 0.05  # where there is so little entropy, the exact game is a better start than one option,
cdef double _FAR = 3.0  # and than a strategy whose gap exceeds so many times the entropy's weight
cdef double _STRAY = 1e-14  # by which the shares of a strategy may miss a sum of 1

cdef enum:
    _SHORT = 64  # rows and columns of more entries fill the lanes by themselves
    _FEW = 8  # labels for which rows gain by waiting for each other; with more, the slowest of them costs too much


cdef inline void _noted(const MatrixBlock* block, Py_ssize_t i, Certificate* found) noexcept nogil:
    """The certificate of a row that its block has closed."""
    found.top, found.upper, found.least = block.facts.top[i], block.facts.upper[i], block.facts.least[i]
    found.gap, found.entropy = block.facts.gap[i], block.facts.entropy[i]


cdef class AnyCost(MatrixLoss):
    """The loss of a cost matrix, whoever says where that is."""

    cdef int measure(self) except -1:
        new_core(self.options, self.k, &self.core_size)
        return 0

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
        """Write scores plus least costs of columns, over the scale, the largest 0; return what was taken off."""
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
        if self.small():
            block = matrix_block_room(self.options, self.k) * sizeof(double)
        return self.room_size() + 2 * block

    cdef bint small(self) noexcept nogil:
        return self.k <= _SHORT and self.options <= _SHORT

    cdef void play(
        self, Py_ssize_t n, const double* f, double mu, double* p, double* q, Certificate* found, void* room
    ) noexcept nogil:
        cdef Py_ssize_t i
        self.begin(room)
        if self.small():
            self.play_small(n, f, mu, p, q, found, room)
            return
        for i in range(n):
            self.play_row(f, mu, p, q, found + i, room)
            f, p, q = f + self.k, p + self.options, q + self.k

    cdef void play_row(
        self, const double* f, double mu, double* p, double* q, Certificate* found, void* room
    ) noexcept nogil:
        cdef size_t at = <size_t> self.beyond(room)
        cdef Temper t = new_temper(self.options, self.k, &at)
        cdef double best, gap, m = mu / self.scale
        found.top = simd_top(f, self.k)
        if fabs(found.top) < INFINITY:
            best = self.scaled(f, found.top, t.f)
            gap = self.settle(m, self.opening(m, p, &t), p, &t, room)
            self.certify(f, mu, best, gap, &t, q, found)
        else:
            lose_row(self.k, self.options, p, q, found)

    cdef void play_small(
        self, Py_ssize_t n, const double* f, double mu, double* p, double* q, Certificate* found, void* room
    ) noexcept nogil:
        """Rows in blocks: those that stay open are solved together where two options are in play, else one by one."""
        cdef MatrixBlock block, waiting
        cdef BlockMatrix L
        cdef double* own = <double*> (<char*> room + self.room_size())
        cdef double m = mu / self.scale, closed = closed_gap(m)
        cdef Py_ssize_t i, row, size, first = 0, k = self.k, options = self.options
        L.rows, L.floor, L.scale, L.options, L.k = self.matrix.rows, self.floor, self.scale, options, k
        matrix_block_lay_out(&block, options, k, own)
        matrix_block_lay_out(&waiting, options, k, own + matrix_block_room(options, k))
        while first < n:
            size = min(n - first, <Py_ssize_t> BLOCK)
            matrix_block_play(
                &L, f + first * k, size, m, closed, m >= _COLD, p + first * options, q + first * k, &block
            )
            for i in range(size):
                row = first + i
                if isnan(block.facts.top[i]):
                    lose_row(k, options, p + row * options, q + row * k, found + row)
                elif block.open[i] == 0.0:
                    _noted(&block, i, found + row)
                elif not (
                    k <= _FEW
                    and block.begun[i] > 0.0
                    and (m >= _COLD or block.left[i] <= _FAR * m)
                    and matrix_block_wait(&L, &block, i, row, &waiting)
                ):
                    self.finish(&L, &block, i, f + row * k, mu, p + row * options, q + row * k, found + row, room)
                if waiting.count == BLOCK or (waiting.count > 0 and row == n - 1):
                    self.play_waiting(&L, &waiting, f, mu, p, q, found, room)
            first += size

    cdef void play_waiting(
        self, const BlockMatrix* L, MatrixBlock* waiting, const double* f, double mu, double* p, double* q,
        Certificate* found, void* room,
    ) noexcept nogil:
        """The rows that wait for the shares of two options; one for which a third matters is finished alone."""
        cdef Py_ssize_t i, row
        matrix_block_pairs(L, mu / self.scale, closed_gap(mu / self.scale), waiting)
        for i in range(waiting.count):
            row = waiting.row[i]
            matrix_block_write(L, waiting, i, p + row * self.options, q + row * self.k)
            if waiting.open[i] == 0.0:
                _noted(waiting, i, found + row)
            else:
                self.finish(
                    L, waiting, i, f + row * self.k, mu, p + row * self.options, q + row * self.k, found + row, room
                )
        waiting.count = 0

    cdef void finish(
        self, const BlockMatrix* L, const MatrixBlock* block, Py_ssize_t i, const double* f, double mu, double* p,
        double* q, Certificate* found, void* room,
    ) noexcept nogil:
        """Solve row ``i`` of a block from what is known of it."""
        cdef size_t at = <size_t> self.beyond(room)
        cdef Temper t = new_temper(self.options, self.k, &at)
        cdef double gap = block.left[i] if block.begun[i] > 0.0 else INFINITY
        found.top = block.facts.top[i]
        matrix_block_row(L, block, i, t.f, t.z, t.q, t.c)
        taken(&t, p)
        gap = self.settle(mu / self.scale, gap, p, &t, room)
        self.certify(f, mu, block.best[i], gap, &t, q, found)

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
        """Make ``p`` a strategy, up to rounding; return whether it is one that says more than the uniform."""
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


cdef class Cost(AnyCost):
    """The loss of one cost matrix; the parameters are those of :class:`nashlearn.solvers.matrix_game.Cost`."""

    def __cinit__(self, L, floor, lowest, tilt, double scale, rows, columns):
        self.take(L)
        self.measure()
        self.kept = floor, lowest, tilt, rows, columns
        self.scale = scale
        self.floor = <const double*> vector(floor, "floor", DOUBLE, self.k)
        self.matrix.lowest = <const Py_ssize_t*> vector(lowest, "lowest", INDEX, self.k)
        self.matrix.tilt = <const double*> vector(tilt, "tilt", DOUBLE, self.options)
        self.matrix.rows = <const double*> matrix(rows, "rows", DOUBLE, self.options, self.k)
        self.matrix.columns = <const double*> matrix(columns, "columns", DOUBLE, self.k, self.options)
        within(self.matrix.lowest, self.k, self.options, "lowest")

    cdef size_t steps_size(self) noexcept nogil:
        return self.room_size() + (pieces_room(self.options, self.k) if few_pieces(self.options, self.k) else 0)

    cdef void begin_steps(self, double a, void* room) noexcept nogil:
        if few_pieces(self.options, self.k):
            no_pieces(self.options, self.k, self.entries, a, <char*> room + self.room_size())

    cdef void next_step(self, const double* g, double a, double* q, double* p, void* room) noexcept nogil:
        cdef Pieces* pieces = <Pieces*> (<char*> room + self.room_size())
        if not few_pieces(self.options, self.k):
            self.prox(self.k, g, a, q, p, room)
        elif not step_in_piece(pieces, g, q, p):
            self.prox(self.k, g, a, q, p, room)
            begin_at(pieces, q, p)

    def __reduce__(self):
        floor, lowest, tilt, rows, columns = self.kept
        return Cost, (self.L, floor, lowest, tilt, self.scale, rows, columns)
