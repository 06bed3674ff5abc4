"""The loss that others derive from, and the solver of rows that serves them all."""

from libc.math cimport INFINITY, NAN, isnan, log
from libc.string cimport memset
from nashlearn.kernels.checks cimport (
    DOUBLE,
    MARK,
    SINGLE,
    Kind,
    extent,
    is_single,
    matrix,
    matrix_out,
    vector,
    vector_out,
)
from nashlearn.kernels.scratch cimport Scratch, doubles
from nashlearn.kernels.simd cimport simd_sum, simd_top
from nashlearn.kernels.vectors cimport vec_exponentials, vec_scale

ctypedef fused real:
    float
    double


cdef class Loss:
    """A loss between the options of a predictor and the labels of an adversary.

    Attributes
    ----------
    k, options : int
        Entries of the adversary's strategy, and of the predictor's.
    partial : bool
        Whether steps may be taken on some of the labels.
    """

    cdef Loss own(self, Py_ssize_t n):
        return self

    cdef void at(self, Py_ssize_t row) noexcept nogil:
        pass

    cdef size_t room_size(self) noexcept nogil:
        return 0

    cdef void begin(self, void* room) noexcept nogil:
        pass

    cdef double equilibrium(self, const double* f, double* q, double* p, void* room) noexcept nogil:
        return NAN

    cdef double gain(self, const double* p, double* reward) noexcept nogil:
        return NAN

    cdef double reply(self, const double* reward, double mu, double* q) noexcept nogil:
        cdef double top = simd_top(reward, self.k), mass
        cdef Py_ssize_t j
        if mu == 0.0:
            return top
        if not top > -INFINITY:
            for j in range(self.k):
                q[j] = NAN
            return top
        vec_exponentials(reward, top, mu, self.k, q)
        mass = simd_sum(q, self.k)
        vec_scale(q, 1.0 / mass, self.k)
        return top + mu * log(mass)

    cdef double risk(self, const double* q, void* room) noexcept nogil:
        return NAN

    cdef double common(self, const double* f) noexcept nogil:
        return simd_top(f, self.k)

    cdef void prox(self, Py_ssize_t m, const double* g, double a, double* q, double* p, void* room) noexcept nogil:
        memset(p, 0, self.options * sizeof(double))

    cdef size_t steps_size(self) noexcept nogil:
        return self.room_size()

    cdef void begin_steps(self, double a, void* room) noexcept nogil:
        pass

    cdef void next_step(self, const double* g, double a, double* q, double* p, void* room) noexcept nogil:
        self.prox(self.k, g, a, q, p, room)

    cdef void contenders(self, const double* g, double a, const double* q, unsigned char* near) noexcept nogil:
        memset(near, 1, self.k)

    cdef Py_ssize_t tangent(
        self, double a, const double* q, const unsigned char* tight, double* jacobian, void* room
    ) noexcept nogil:
        return 0

    cdef void temper(self, const double* f, double mu, double* p, void* room) noexcept nogil:
        cdef Py_ssize_t i
        for i in range(self.options):
            p[i] = NAN

    cdef void turn(self, double mu, const double* q, const double* p, double* v, void* room) noexcept nogil:
        cdef Py_ssize_t j
        for j in range(self.k):
            v[j] = NAN

    cdef size_t play_size(self) noexcept nogil:
        return self.room_size() + 2 * self.k * sizeof(double)

    cdef void play(
        self, Py_ssize_t n, const double* f, double mu, double* p, double* q, Certificate* found, void* room
    ) noexcept nogil:
        cdef double* relative = <double*> (<size_t> room + self.room_size())
        cdef Py_ssize_t i, j
        self.begin(room)
        for i in range(n):
            found[i].top = self.common(f)
            for j in range(self.k):
                relative[j] = f[j] - found[i].top
            if isnan(simd_sum(relative, self.k)):
                lose_row(self.k, self.options, p, q, found + i)
            else:
                _begin_row(self.options, p)
                self.temper(relative, mu, p, room)
                _certify_row(self, relative, mu, p, q, found + i, relative + self.k, room)
            f, p, q = f + self.k, p + self.options, q + self.k

    cdef Py_ssize_t block_equilibria(
        self, Py_ssize_t n, const double* f, double* value, double* q, double* p, double* gap, double* risk, void* room
    ) noexcept nogil:
        return 0

    cdef size_t block_steps_size(self) noexcept nogil:
        return 0

    cdef Py_ssize_t block_steps(
        self, Py_ssize_t n, const double* f, const double* middle, double mu, double* q, unsigned char* tight,
        Step* found, void* room
    ) noexcept nogil:
        return 0

    def step(self, g, double a, q, p):
        """Overwrite ``q`` (k,), a point of the simplex, with the proximal step of ``g`` (k,), and ``p`` too."""
        cdef const double* g_at = <const double*> vector(g, "g", DOUBLE, self.k)
        cdef double* q_at = <double*> vector_out(q, "q", DOUBLE, self.k)
        cdef double* p_at = <double*> vector_out(p, "p", DOUBLE, self.options)
        cdef Scratch room = Scratch(self.room_size())
        if not a > 0.0:
            raise ValueError(f"a must be positive; got {a}")
        with nogil:
            self.prox(self.k, g_at, a, q_at, p_at, room.at)

    def jacobian(self, double a, q, tight, out):
        """Write the generalised Jacobian of the step that ended at ``q`` into ``out`` (k, k); its nonzero rows."""
        cdef const double* q_at = <const double*> vector(q, "q", DOUBLE, self.k)
        cdef const unsigned char* marks = <const unsigned char*> vector(tight, "tight", MARK, self.options)
        cdef double* found = <double*> matrix_out(out, "out", DOUBLE, self.k, self.k)
        cdef Scratch room = Scratch(self.room_size())
        cdef Py_ssize_t count
        with nogil:
            count = self.tangent(a, q_at, marks, found, room.at)
        return count

    def earned(self, scores, p, double mu=0.0):
        """``max_q <scores + L' p, q> + mu H(q)``: what a best reply to ``p`` (options,) gets."""
        cdef const double* f = <const double*> vector(scores, "scores", DOUBLE, self.k)
        cdef const double* p_at = <const double*> vector(p, "p", DOUBLE, self.options)
        cdef Scratch room = Scratch(2 * self.k * sizeof(double))
        cdef double* reward = <double*> room.at
        cdef Py_ssize_t j
        if not mu >= 0.0:
            raise ValueError(f"mu must not be negative; got {mu}")
        for j in range(self.k):
            reward[j] = f[j]
        return self.gain(p_at, reward) + self.reply(reward, mu, reward + self.k)

    def certificate(self, scores, p, double mu, q):
        """Write the best reply to any ``p`` (options,) into ``q`` (k,), for ``mu > 0``, and say what the two secure.

        Returns ``upper``, ``least``, ``gap`` and ``entropy``, the first relative to what the scores have in common.
        """
        cdef const double* f = <const double*> vector(scores, "scores", DOUBLE, self.k)
        cdef const double* p_at = <const double*> vector(p, "p", DOUBLE, self.options)
        cdef double* q_at = <double*> vector_out(q, "q", DOUBLE, self.k)
        cdef Scratch room = Scratch(self.play_size())
        cdef Scratch own = Scratch(2 * self.k * sizeof(double))
        cdef double* relative = <double*> own.at
        cdef Certificate found
        cdef Py_ssize_t j
        if not mu > 0.0:
            raise ValueError(f"mu must be positive; got {mu}")
        found.top = self.common(f)
        for j in range(self.k):
            relative[j] = f[j] - found.top
        self.begin(room.at)
        _certify_row(self, relative, mu, p_at, q_at, &found, relative + self.k, room.at)
        return found.upper, found.least, found.gap, found.entropy


cdef void _begin_row(Py_ssize_t options, double* p) noexcept nogil:
    """The uniform strategy, where ``p`` is none."""
    cdef Py_ssize_t j
    if not 0.5 < simd_sum(p, options) < 2.0:
        for j in range(options):
            p[j] = 1.0 / options


cdef void _certify_row(
    Loss loss, const double* f, double mu, const double* p, double* q, Certificate* found, double* reward, void* room
) noexcept nogil:
    """Write the best reply ``q`` to ``p`` at scores less what they have in common, and what the two secure."""
    cdef Py_ssize_t j
    cdef double cost
    for j in range(loss.k):
        reward[j] = f[j]
    cost = loss.gain(p, reward)
    found.upper = found.entropy = cost + loss.reply(reward, mu, q)
    found.least = loss.risk(q, room)
    for j in range(loss.k):
        if q[j] > 0.0:  # 0 * -inf must count as 0
            found.entropy -= q[j] * f[j]
            cost += q[j] * (reward[j] - f[j])
    found.gap = max(cost - found.least, 0.0)
    found.entropy -= found.gap


cdef void lose_row(Py_ssize_t k, Py_ssize_t options, double* p, double* q, Certificate* found) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(k):
        q[j] = NAN
    for j in range(options):
        p[j] = NAN
    found.top = found.upper = found.least = found.gap = found.entropy = NAN


cdef double _certified(
    Loss loss, const double* f, const double* q, const double* p, double* relative, double* risk, void* room
) noexcept nogil:
    """The gap of two strategies; their risk into ``risk``.

    It is taken relative to what scores have in common: it keeps its precision for scores of any size.
    """
    cdef Py_ssize_t j, k = loss.k
    cdef double top = loss.common(f), lower
    for j in range(k):
        relative[j] = f[j] - top
    lower = risk[0] = loss.risk(q, room)
    for j in range(k):
        if q[j] > 0.0:  # 0 * -inf must count as 0
            lower += relative[j] * q[j]
    return max(loss.gain(p, relative) + loss.reply(relative, 0.0, NULL) - lower, 0.0)


cdef struct Rows:  # of one type, which the function that reads them knows
    const void* scores
    void* value
    void* q
    void* p
    void* gap  # NULL, as entropy, where no certificate is asked for
    void* entropy
    Py_ssize_t n


cdef void _solve(Loss loss, const Rows* rows, const real* kind, void* room, size_t at) noexcept nogil:
    """Equilibria of all rows; single precision is computed in double and rounded, the gap is that of what is stored."""
    cdef Py_ssize_t i, j, taken = 0, k = loss.k, options = loss.options
    cdef double* relative = doubles(&at, k)
    cdef double* f = doubles(&at, k)
    cdef double* q = doubles(&at, k)
    cdef double* spare = doubles(&at, options)
    cdef double* p = spare
    cdef double risk, gap
    cdef real* value = <real*> rows.value
    loss.begin(room)
    if real is double:
        if rows.gap != NULL:
            taken = loss.block_equilibria(
                rows.n, <double*> rows.scores, value, <double*> rows.q, <double*> rows.p, <double*> rows.gap,
                <double*> rows.entropy, room,
            )
    for i in range(taken, rows.n):
        loss.at(i)
        if real is double:
            f, q = <double*> rows.scores + i * k, <double*> rows.q + i * k
            p = <double*> rows.p + i * options if rows.p != NULL else spare
            value[i] = loss.equilibrium(f, q, p, room)
        else:
            for j in range(k):
                f[j] = (<const float*> rows.scores)[i * k + j]
            value[i] = <float> loss.equilibrium(f, q, p, room)
            _rounded(q, k, <float*> rows.q + i * k)
            if rows.p != NULL:
                _rounded(p, options, <float*> rows.p + i * options)
        if rows.gap != NULL:
            gap = _certified(loss, f, q, p, relative, &risk, room)
            if isnan(value[i]):
                gap = risk = NAN
            (<real*> rows.gap)[i] = <real> gap
            (<real*> rows.entropy)[i] = <real> risk


cdef inline void _rounded(double* x, Py_ssize_t n, float* out) noexcept nogil:
    """Write ``x`` in single precision, and what it has become back."""
    cdef Py_ssize_t j
    for j in range(n):
        out[j] = <float> x[j]
        x[j] = out[j]


cdef int _run(Loss loss, Rows* rows, bint single) except -1:
    """Lend scratch to :func:`_solve` and release the lock."""
    cdef Scratch room = Scratch(loss.play_size())
    cdef Scratch own = Scratch((3 * loss.k + loss.options) * sizeof(double))
    loss = loss.own(rows.n)
    with nogil:
        if single:
            _solve[float](loss, rows, NULL, room.at, <size_t> own.at)
        else:
            _solve[double](loss, rows, NULL, room.at, <size_t> own.at)
    return 0


def solve_rows(Loss loss not None, scores, value, q, p, gap, entropy):
    """Equilibria of all rows of ``scores`` (n, k), float32 or float64, written into the last five arguments.

    ``gap`` is what the strategies leave between them, ``entropy`` the risk of ``q``. A row with NaN gives NaN.
    Cost: O(k) a row beside that of the loss.
    """
    cdef Rows rows
    cdef bint single = is_single(scores, "scores")
    cdef Kind kind = SINGLE if single else DOUBLE
    rows.n = extent(scores, "scores", 0)
    rows.scores = matrix(scores, "scores", kind, rows.n, loss.k)
    rows.value = vector_out(value, "value", kind, rows.n)
    rows.q = matrix_out(q, "q", kind, rows.n, loss.k)
    rows.p = matrix_out(p, "p", kind, rows.n, loss.options)
    rows.gap = vector_out(gap, "gap", kind, rows.n)
    rows.entropy = vector_out(entropy, "entropy", kind, rows.n)
    _run(loss, &rows, single)


def equilibria(Loss loss not None, scores, value, q, p):
    """What :func:`solve_rows` writes, without the certificate; ``p`` may be None, where nobody wants it."""
    cdef Rows rows
    cdef bint single = is_single(scores, "scores")
    cdef Kind kind = SINGLE if single else DOUBLE
    rows.n = extent(scores, "scores", 0)
    rows.scores = matrix(scores, "scores", kind, rows.n, loss.k)
    rows.value = vector_out(value, "value", kind, rows.n)
    rows.q = matrix_out(q, "q", kind, rows.n, loss.k)
    rows.p = NULL if p is None else matrix_out(p, "p", kind, rows.n, loss.options)
    rows.gap = rows.entropy = NULL
    _run(loss, &rows, single)


def risk_rows(Loss loss not None, q, found):
    """Bayes risks of all rows of ``q`` (n, k), written into ``found`` (n,)."""
    cdef Py_ssize_t i, n = extent(q, "q", 0)
    cdef const double* q_at = <const double*> matrix(q, "q", DOUBLE, n, loss.k)
    cdef double* out = <double*> vector_out(found, "found", DOUBLE, n)
    cdef Scratch room = Scratch(loss.room_size())
    loss = loss.own(n)
    with nogil:
        for i in range(n):
            loss.at(i)
            out[i] = loss.risk(q_at + i * loss.k, room.at)


def gain_rows(Loss loss not None, p, out):
    """``L' p`` of all rows of ``p`` (n, options), what they lose to each label, written into ``out`` (n, k).

    Cost: O(k) a row, or O(labels options) for a matrix.
    """
    cdef Py_ssize_t i, j, k = loss.k, n = extent(p, "p", 0)
    cdef const double* p_at = <const double*> matrix(p, "p", DOUBLE, n, loss.options)
    cdef double* found = <double*> matrix_out(out, "out", DOUBLE, n, k)
    cdef double common
    loss = loss.own(n)
    with nogil:
        for i in range(n):
            loss.at(i)
            for j in range(k):
                found[i * k + j] = 0.0
            common = loss.gain(p_at + i * loss.options, found + i * k)
            for j in range(k):
                found[i * k + j] += common


def top_rows(scores, found):
    """Write the largest entry of every row of ``scores`` (n, k) into ``found`` (n,); NaN where a row holds one."""
    cdef bint single = is_single(scores, "scores")
    cdef Kind kind = SINGLE if single else DOUBLE
    cdef Py_ssize_t n = extent(scores, "scores", 0), k = extent(scores, "scores", 1)
    cdef const void* rows = matrix(scores, "scores", kind, n, k)
    cdef void* out = vector_out(found, "found", kind, n)
    with nogil:
        if single:
            _tops(<const float*> rows, n, k, <float*> out)
        else:
            _tops(<const double*> rows, n, k, <double*> out)


cdef void _tops(const real* scores, Py_ssize_t n, Py_ssize_t k, real* found) noexcept nogil:
    cdef Py_ssize_t i, j
    cdef real top
    for i in range(n):
        if real is double:
            found[i] = simd_top(scores + i * k, k)
        else:
            top = <float> -INFINITY
            for j in range(k):
                if not scores[i * k + j] <= top:  # a NaN stays, once it is met
                    top = scores[i * k + j]
                    if isnan(top):
                        break
            found[i] = top


def certify_rows(Loss loss not None, scores, q, p, gap, entropy):
    """Gaps and entropies of strategies from anywhere, for scores (n, k) in float64."""
    cdef Py_ssize_t i, n = extent(scores, "scores", 0), k = loss.k
    cdef const double* f = <const double*> matrix(scores, "scores", DOUBLE, n, k)
    cdef const double* q_at = <const double*> matrix(q, "q", DOUBLE, n, k)
    cdef const double* p_at = <const double*> matrix(p, "p", DOUBLE, n, loss.options)
    cdef double* gaps = <double*> vector_out(gap, "gap", DOUBLE, n)
    cdef double* risks = <double*> vector_out(entropy, "entropy", DOUBLE, n)
    cdef Scratch room = Scratch(loss.room_size())
    cdef Scratch relative = Scratch(k * sizeof(double))
    loss = loss.own(n)
    with nogil:
        for i in range(n):
            loss.at(i)
            gaps[i] = _certified(
                loss, f + i * k, q_at + i * k, p_at + i * loss.options, <double*> relative.at, risks + i, room.at
            )
