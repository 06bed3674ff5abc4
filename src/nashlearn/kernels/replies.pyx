"""The predictor's side of a network: what a node's reply costs, and the best reply to what the others say.

With the other nodes' replies fixed, node ``v`` sees only the numbers ``c(a)``, ``eps`` times the logarithm of its
unnormalised marginal without its own reply, and minimises over the simplex

    eps log sum_a exp((c(a) + (L' p)(a)) / eps).

For the zero-one loss of weight ``w`` the answer is the sparsemax threshold, ``w p = [c - tau]_+``, whatever ``eps``;
for other losses a few Newton steps between pairs of options, from the reply that is there.
"""

from libc.math cimport INFINITY, NAN, exp, log
from libc.string cimport memcpy, memset
from nashlearn.kernels.checks cimport DOUBLE, INDEX, extent, matrix, vector
from nashlearn.kernels.simd cimport simd_dot, simd_max, simd_sum, simd_threshold
from nashlearn.kernels.vectors cimport vec_exponentials, vec_logarithms, vec_product

cdef enum:
    _PAIR_STEPS = 8  # at a visit: the next sweep goes on from there
    _HALVINGS = 60


cdef class Replies:
    """A loss of the nodes of networks.

    Attributes
    ----------
    n : int
        Number of nodes.
    """

    cdef int fits(self, Py_ssize_t n, Py_ssize_t k, Py_ssize_t options) except -1:
        if n > self.n:
            raise ValueError(f"the loss has {self.n} nodes; got {n}")
        if k < 1:
            raise ValueError(f"there must be a label; got {k}")
        return 0

    cdef double reach(self, Py_ssize_t v, double eps) noexcept nogil:
        return NAN

    cdef double gain(self, Py_ssize_t v, const double* p, Py_ssize_t k, double* g) noexcept nogil:
        return NAN

    cdef void reply(
        self, Py_ssize_t v, const double* c, Py_ssize_t k, double eps, double* p, double* g
    ) noexcept nogil:
        pass

    cdef double tilt(
        self, Py_ssize_t v, const double* p, const double* base, Py_ssize_t k, double eps, double* g, double* node
    ) noexcept nogil:
        cdef double top = self.gain(v, p, k, g)
        cdef Py_ssize_t a
        for a in range(k):
            node[a] = exp((g[a] - top) / eps)
        vec_product(node, base, k, node)
        return top

    cdef double settle(
        self, Py_ssize_t v, double* c, double best, const double* base, Py_ssize_t k, double eps, double* p, double* g,
        double* node
    ) noexcept nogil:
        cdef double least = best * exp(-self.reach(v, eps) / eps)
        cdef Py_ssize_t a
        for a in range(k):
            c[a] = eps * log(c[a] / best) if c[a] > least else -INFINITY
        self.reply(v, c, k, eps, p, g)
        return self.tilt(v, p, base, k, eps, g, node)

    cdef double risk(self, Py_ssize_t v, const double* q, Py_ssize_t k) noexcept nogil:
        return NAN

    cdef double expected(self, Py_ssize_t v, const double* p, const double* q, Py_ssize_t k) noexcept nogil:
        return NAN

    cdef double stakes(
        self, Py_ssize_t v, const double* p, const double* q, Py_ssize_t k, double* least
    ) noexcept nogil:
        least[0] = self.risk(v, q, k)
        return self.expected(v, p, q, k)


cdef inline void _share(double* g, Py_ssize_t few, double top, double w) noexcept nogil:
    """Turn the ``few`` candidates in ``g`` into shares of the threshold at ``w`` below ``top``."""
    cdef double t, mass = 0.0
    cdef Py_ssize_t i
    if few == 1:
        g[0] = 1.0
        return
    t = simd_threshold(g, few, top, w)
    for i in range(few):
        g[i] = max(g[i] - top - t, 0.0)
        mass += g[i]
    for i in range(few):
        g[i] /= mass


cdef inline Py_ssize_t _candidates(
    const double* c, Py_ssize_t k, double least, double top, double* g, double* label
) noexcept nogil:
    """Copy entries of ``c`` above ``least``, and their labels, to the front; the largest if there is none."""
    cdef Py_ssize_t a, few = 0
    for a in range(k):  # no branches: which labels enter cannot be foreseen
        g[few], label[few] = c[a], a
        few += c[a] > least
    if few == 0:
        for a in range(k):
            if c[a] == top:
                g[0], label[0] = top, a
        few = 1
    return few


cdef class Hamming(Replies):
    """The zero-one loss with a weight for each node."""

    def __cinit__(self, weights):
        self.n = extent(weights, "weights", 0)
        self.weights = <const double*> vector(weights, "weights", DOUBLE, self.n)
        self.kept = weights

    def __reduce__(self):
        return Hamming, (self.kept,)

    cdef int fits(self, Py_ssize_t n, Py_ssize_t k, Py_ssize_t options) except -1:
        Replies.fits(self, n, k, options)
        if options < k:
            raise ValueError(f"replies must have an option for each of {k} labels; got {options}")
        return 0

    cdef double reach(self, Py_ssize_t v, double eps) noexcept nogil:
        return self.weights[v]

    cdef double gain(self, Py_ssize_t v, const double* p, Py_ssize_t k, double* g) noexcept nogil:
        cdef double w = self.weights[v]
        cdef Py_ssize_t a
        for a in range(k):
            g[a] = w * (1.0 - p[a])
        return simd_max(g, k, g[0])

    cdef void reply(
        self, Py_ssize_t v, const double* c, Py_ssize_t k, double eps, double* p, double* g
    ) noexcept nogil:
        cdef double w = self.weights[v], top = simd_max(c, k, c[0])
        cdef double* label = g + k
        cdef Py_ssize_t i, few = _candidates(c, k, top - w, top, g, label)  # only labels within w of the best can enter
        _share(g, few, top, w)
        memset(p, 0, k * sizeof(double))
        for i in range(few):
            p[<Py_ssize_t> label[i]] = g[i]

    cdef double tilt(
        self, Py_ssize_t v, const double* p, const double* base, Py_ssize_t k, double eps, double* g, double* node
    ) noexcept nogil:
        cdef double w = self.weights[v]
        vec_exponentials(p, 0.0, -eps / w, k, node)  # of all labels: which are in play cannot be foreseen
        vec_product(node, base, k, node)
        return w

    cdef double settle(
        self, Py_ssize_t v, double* c, double best, const double* base, Py_ssize_t k, double eps, double* p, double* g,
        double* node
    ) noexcept nogil:
        cdef double w = self.weights[v], certain = exp(-w / eps)
        cdef double* label = g + k
        cdef Py_ssize_t a, i, full, few = _candidates(c, k, best * certain, best, g, label)
        memset(p, 0, k * sizeof(double))
        memcpy(node, base, k * sizeof(double))
        if few == 1:  # most nodes, once training has come some way
            a = <Py_ssize_t> label[0]
            p[a] = 1.0
            node[a] *= certain
            return w
        full = min((few + 3) // 4 * 4, k)  # lanes that would be idle
        for i in range(few):
            c[i] = g[i] / best
        for i in range(few, full):
            c[i] = 1.0
        vec_logarithms(c, full, g)
        for i in range(few):
            g[i] *= eps
        _share(g, few, 0.0, w)
        vec_exponentials(g, 0.0, -eps / w, full, c)
        for i in range(few):
            if g[i] > 0.0:
                a = <Py_ssize_t> label[i]
                p[a] = g[i]
                node[a] *= c[i]
        return w

    cdef double risk(self, Py_ssize_t v, const double* q, Py_ssize_t k) noexcept nogil:
        return self.weights[v] * (simd_sum(q, k) - simd_max(q, k, q[0]))

    cdef double expected(self, Py_ssize_t v, const double* p, const double* q, Py_ssize_t k) noexcept nogil:
        return self.weights[v] * (simd_sum(q, k) - simd_dot(p, q, k))

    cdef double stakes(
        self, Py_ssize_t v, const double* p, const double* q, Py_ssize_t k, double* least
    ) noexcept nogil:
        cdef double w = self.weights[v], total = simd_sum(q, k)  # once
        least[0] = w * (total - simd_max(q, k, q[0]))
        return w * (total - simd_dot(p, q, k))


cdef struct Pair:  # of options, and what to move from one to the other
    const double* cheap
    const double* dear
    double w
    double step


cdef inline double _moved(const Pair* pair, const double* c, const double* lift, Py_ssize_t a) noexcept nogil:
    return c[a] + lift[a] + pair.step * pair.w * (pair.cheap[a] - pair.dear[a])


cdef void _halve(
    Pair* pair, const double* c, const double* lift, Py_ssize_t k, double eps, double before, double slope
) noexcept nogil:
    """Halve the step until the cost falls enough: the curve may bend more sharply further on."""
    cdef Py_ssize_t a, trip
    cdef double mass, peak
    for trip in range(_HALVINGS):
        mass, peak = 0.0, -INFINITY
        for a in range(k):
            peak = max(peak, _moved(pair, c, lift, a))
        for a in range(k):
            mass += exp((_moved(pair, c, lift, a) - peak) / eps)
        if peak + eps * log(mass) <= before - 0.1 * pair.step * slope:
            return
        pair.step *= 0.5


cdef class NodeCosts(Replies):
    """Any cost matrix, options by labels, times a weight for each node, of which it may use the leading options."""

    cdef const double* L
    cdef const Py_ssize_t* n_options
    cdef Py_ssize_t labels, most  # columns of L, and options of the node that has most
    cdef double largest

    def __cinit__(self, weights, L, n_options):
        cdef Py_ssize_t v, options = extent(L, "L", 0)
        self.n, self.labels = extent(weights, "weights", 0), extent(L, "L", 1)
        self.weights = <const double*> vector(weights, "weights", DOUBLE, self.n)
        self.L = <const double*> matrix(L, "L", DOUBLE, options, self.labels)
        self.n_options = <const Py_ssize_t*> vector(n_options, "n_options", INDEX, self.n)
        self.most = 0
        for v in range(self.n):
            if not 1 <= self.n_options[v] <= options:
                raise ValueError(f"n_options must lie in 1..{options}, the rows of L; got {self.n_options[v]}")
            self.most = max(self.most, self.n_options[v])
        self.largest = simd_max(self.L, options * self.labels, -INFINITY)
        self.kept = weights, L, n_options

    def __reduce__(self):
        return NodeCosts, self.kept

    cdef int fits(self, Py_ssize_t n, Py_ssize_t k, Py_ssize_t options) except -1:
        Replies.fits(self, n, k, options)
        if k > self.labels:
            raise ValueError(f"the loss has {self.labels} labels; got {k}")
        if options < self.most:
            raise ValueError(f"replies must have room for {self.most} options; got {options}")
        return 0

    cdef double reach(self, Py_ssize_t v, double eps) noexcept nogil:
        return self.weights[v] * self.largest + 40.0 * eps

    cdef double gain(self, Py_ssize_t v, const double* p, Py_ssize_t k, double* g) noexcept nogil:
        cdef Py_ssize_t i, a
        cdef double s
        memset(g, 0, k * sizeof(double))
        for i in range(self.n_options[v]):
            s = self.weights[v] * p[i]
            if s > 0.0:
                for a in range(k):
                    g[a] += s * self.L[i * self.labels + a]
        return simd_max(g, k, g[0])

    cdef void reply(
        self, Py_ssize_t v, const double* c, Py_ssize_t k, double eps, double* p, double* g
    ) noexcept nogil:
        # Newton steps that move mass from the dearest option in use to the cheapest, until they cost the same.
        cdef double* lift = g
        cdef double* q = g + k
        cdef double w = self.weights[v], top, norm, low, high, mean, square, bend
        cdef Py_ssize_t i, a, trip, cheap, dear
        cdef Pair pair
        pair.w = w
        self.gain(v, p, k, lift)
        for trip in range(_PAIR_STEPS):
            top, norm = -INFINITY, 0.0
            for a in range(k):
                top = max(top, c[a] + lift[a])
            for a in range(k):
                q[a] = exp((c[a] + lift[a] - top) / eps)
                norm += q[a]
            self.extremes(v, p, q, norm, k, &cheap, &dear, &low, &high)
            if high - low <= 1e-13 * w or cheap == dear:
                break
            pair.cheap, pair.dear = self.L + cheap * self.labels, self.L + dear * self.labels
            mean, square = low - high, 0.0
            for a in range(k):
                bend = w * (pair.cheap[a] - pair.dear[a]) - mean
                square += q[a] / norm * (bend * bend)
            pair.step = p[dear] if square <= 0.0 else min(p[dear], (high - low) * eps / square)
            _halve(&pair, c, lift, k, eps, top + eps * log(norm), high - low)
            p[cheap] += pair.step
            p[dear] = max(p[dear] - pair.step, 0.0)
            for a in range(k):
                lift[a] += pair.step * w * (pair.cheap[a] - pair.dear[a])

    cdef void extremes(
        self, Py_ssize_t v, const double* p, const double* q, double norm, Py_ssize_t k, Py_ssize_t* cheap,
        Py_ssize_t* dear, double* low, double* high
    ) noexcept nogil:
        """The cheapest option and the dearest in use against ``q / norm``, and what they cost."""
        cdef double w = self.weights[v], cost
        cdef const double* row
        cdef Py_ssize_t i, a
        cheap[0] = dear[0] = 0
        low[0], high[0] = INFINITY, -INFINITY
        for i in range(self.n_options[v]):
            row, cost = self.L + i * self.labels, 0.0
            for a in range(k):
                cost += w * row[a] * q[a]
            cost /= norm
            if cost < low[0]:
                low[0], cheap[0] = cost, i
            if p[i] > 0.0 and cost > high[0]:
                high[0], dear[0] = cost, i

    cdef double risk(self, Py_ssize_t v, const double* q, Py_ssize_t k) noexcept nogil:
        cdef double best = INFINITY
        cdef Py_ssize_t i
        for i in range(self.n_options[v]):
            best = min(best, simd_dot(self.L + i * self.labels, q, k))
        return self.weights[v] * best

    cdef double expected(self, Py_ssize_t v, const double* p, const double* q, Py_ssize_t k) noexcept nogil:
        cdef double cost = 0.0
        cdef Py_ssize_t i
        for i in range(self.n_options[v]):
            if p[i] > 0.0:
                cost += p[i] * simd_dot(self.L + i * self.labels, q, k)
        return self.weights[v] * cost
