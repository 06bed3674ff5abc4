"""Features of arcs by hashing: the templates of [mcdonald2005]_, with lemmas and morphology, and products with them.

The features of an arc are conjunctions of attributes of its two ends and of their neighbours, of the tags between
them, of direction and of distance; each is hashed to one of ``2^bits`` weights. Nothing is stored.
"""

from libc.math cimport INFINITY
from libc.stdint cimport uint64_t
from nashlearn.kernels.checks cimport DOUBLE, INDEX, NARROW, extent, matrix, vector, vector_out, within

cdef enum:
    _TEMPLATES = 33
    _OF_EACH = 5  # templates with a further attribute

ROOM = WIDTH  # indices that an arc may take
VALUE = scale()  # of a present feature


cdef inline uint64_t _mix(uint64_t x, uint64_t y) noexcept nogil:
    x = (x ^ y) * <uint64_t> 0x9E3779B97F4A7C15
    return x ^ (x >> 29)


cdef inline uint64_t _steps(Py_ssize_t distance) noexcept nogil:
    """A distance in seven steps."""
    if distance <= 4:
        return distance
    if distance <= 6:
        return 5
    return 6 if distance <= 10 else 7


cdef inline void _templates(const uint64_t* head, const uint64_t* token, Py_ssize_t row, uint64_t* x) noexcept nogil:
    """What the templates conjoin, of the rows of both ends: form, lemma, coarse tag, fine tag and morphology.

    ``row`` is how far a token lies from the next.
    """
    cdef uint64_t hf = head[0], hm = head[1], hu = head[2], hx = head[3], hg = head[4]
    cdef uint64_t df = token[0], dm = token[1], du = token[2], dx = token[3], dg = token[4]
    cdef uint64_t hl = head[3 - row], hr = head[3 + row], dl = token[3 - row], dr = token[3 + row]  # neighbours' fine tags
    cdef uint64_t tags = _mix(hu, du + 1), fine = _mix(hx, dx + 2), words = _mix(hf, df + 3)
    x[0], x[1], x[2] = _mix(hf, hu), hm, hu
    x[3], x[4], x[5] = _mix(df, du), dm, du
    x[6], x[7], x[8], x[9] = _mix(words, tags), _mix(df, tags), _mix(words, du), _mix(hf, tags)
    x[10], x[11], x[12], x[13], x[14] = _mix(hm, dm + 5), tags, fine, _mix(hm, du), _mix(dm, hu)
    x[19], x[20], x[21], x[22] = _mix(fine, hr), _mix(fine, hl), _mix(fine, dl), _mix(fine, dr)
    x[15], x[16], x[17], x[18] = _mix(x[19], dl), _mix(x[20], dl), _mix(x[19], dr), _mix(x[20], dr)
    x[24], x[25] = _mix(tags, dg), _mix(tags, hg)
    x[23], x[26], x[27] = _mix(x[25], dg), _mix(hm, dx), _mix(dm, hx)
    x[28] = _mix(_mix(x[20], hr), _mix(dl, dr))
    x[29], x[30] = _mix(_mix(hx, hl), hr), _mix(_mix(dx, dl), dr)
    x[31] = _mix(_mix(dm, dl), dr)
    x[32] = _mix(_mix(tags, token[1 - row]), token[1 + row])  # lemmas of the neighbours


cdef inline void _further(const uint64_t* head, const uint64_t* token, Py_ssize_t column, uint64_t* x) noexcept nogil:
    """What is conjoined with a further attribute: of each end with the other's lemma and tags, and of both ends."""
    cdef uint64_t tags = _mix(head[2], token[2] + 1), of_head = head[column], of_token = token[column]
    x[0], x[1] = _mix(of_token, head[1]), _mix(of_token, tags)
    x[2], x[3] = _mix(of_head, token[1] + 1), _mix(of_head, tags + 1)
    x[4] = _mix(_mix(of_head, of_token + 2), tags)


cdef class Sentences:
    """Tokens of all sentences, see :class:`nashlearn.training.designs.hashed_arcs.Attributes`.

    ``code`` (rows, columns) comes as int64, of the same bits.
    """

    def __cinit__(self, code, tag, first, size, int bits):
        cdef Py_ssize_t i, rows = extent(code, "code", 0)
        self.n, self.bits = extent(size, "size", 0), bits
        self.columns = extent(code, "code", 1)
        self.code = <const uint64_t*> matrix(code, "code", INDEX, rows, self.columns)
        if not 5 <= self.columns <= 5 + FURTHER:
            raise ValueError(f"code must have 5 to {5 + FURTHER} columns; it has {self.columns}")
        self.tag = <const Py_ssize_t*> vector(tag, "tag", INDEX, rows)
        self.first = <const Py_ssize_t*> vector(first, "first", INDEX, self.n)
        self.size = <const Py_ssize_t*> vector(size, "size", INDEX, self.n)
        _check_bits(bits)
        within(self.tag, rows, 64, "tag")
        for i in range(self.n):
            if not (0 <= self.first[i] <= rows and 0 <= self.size[i] <= rows - self.first[i] - 3):
                raise ValueError(f"first and size must lie within the {rows} rows of code; sentence {i} does not")
        self.kept = code, tag, first, size

    def __reduce__(self):
        return Sentences, (*self.kept, self.bits)

    cdef Py_ssize_t arc(self, Py_ssize_t i, Py_ssize_t d, Py_ssize_t h, int bits, int* out) noexcept nogil:
        cdef uint64_t[_TEMPLATES] x
        cdef const uint64_t* head = self.code + self.columns * (self.first[i] + 1 + h)
        cdef const uint64_t* token = self.code + self.columns * (self.first[i] + 1 + d)
        cdef uint64_t right = 3 if h == 0 else (1 if h < d else 2), seen = 0, bit, near, pair, one
        cdef Py_ssize_t a = self.first[i] + 1 + h, b = self.first[i] + 1 + d, c, t, m = 2 * _TEMPLATES, most
        cdef Py_ssize_t gap = 0 if h == 0 else (d - h if h < d else h - d), verbs = 0, stops = 0
        cdef int shift = 64 - bits
        near = _mix(right, 16 + _steps(gap))
        _templates(head, token, self.columns, x)
        for t in range(_TEMPLATES):
            one = _mix(_mix(x[t], 1000 + t), right)
            out[2 * t] = <int> (one >> shift)
            out[2 * t + 1] = <int> (_mix(one, near) >> shift)
        pair = _mix(x[11], right)  # of both coarse tags
        for c in range(5, self.columns):
            _further(head, token, c, x)
            for t in range(_OF_EACH):
                one = _mix(_mix(x[t], 2000 + 16 * c + t), right)
                out[m], out[m + 1] = <int> (one >> shift), <int> (_mix(one, near) >> shift)
                m += 2
        if gap <= 1:
            return m
        most = m + BETWEEN
        for c in range(min(a, b) + 1, max(a, b)):
            bit = (<uint64_t> 1) << self.tag[c]
            verbs += self.tag[c] == 0
            stops += self.tag[c] == 1
            if not seen & bit and m < most:
                seen |= bit
                out[m] = <int> (_mix(_mix(pair, self.code[self.columns * c + 2]), 77) >> shift)
                m += 1
        out[m] = <int> (_mix(_mix(pair, 16 * min(verbs, 3) + min(stops, 3)), 78) >> shift)
        return m + 1

    def arcs(self, part, heads, int bits, indices, bounds):
        """Feature indices of one arc for each token of the sentences ``part``, as rows of a compressed matrix.

        ``heads`` names where each arc comes from, ``indices`` has room for ``ROOM`` of each token, and ``bounds``
        (tokens + 1,) tells where each row ends. Returns how many indices were written.
        """
        cdef Py_ssize_t i, j, d, token = 0, filled = 0, count = extent(part, "part", 0), tokens
        cdef const Py_ssize_t* own = self.listed(part, count)
        cdef const Py_ssize_t* head
        cdef int* out
        cdef Py_ssize_t* ends
        _check_bits(bits)
        tokens = sum([self.size[own[j]] for j in range(count)])
        head = <const Py_ssize_t*> vector(heads, "heads", INDEX, tokens)
        out = <int*> vector_out(indices, "indices", NARROW, tokens * WIDTH)
        ends = <Py_ssize_t*> vector_out(bounds, "bounds", INDEX, tokens + 1)
        for j in range(count):
            within(head + token, self.size[own[j]], self.size[own[j]] + 1, "heads")
            token += self.size[own[j]]
        ends[0] = token = 0
        with nogil:
            for j in range(count):
                i = own[j]
                for d in range(1, self.size[i] + 1):
                    filled += self.arc(i, d, head[token], bits, out + filled)
                    token += 1
                    ends[token] = filled
        return filled

    def scores(self, w, part, theta):
        """Scores of all arcs of the sentences ``part`` at the weights ``w`` into ``theta``, one after another.

        An arc from a token to itself has ``-inf``. Cost: about seventy weights read for each arc, and ten for each
        further attribute.
        """
        cdef Py_ssize_t i, j, d, h, at = 0, f, last = -1, count = extent(part, "part", 0)
        cdef const Py_ssize_t* own = self.listed(part, count)
        cdef const double* weight = <const double*> vector(w, "w", DOUBLE, (<Py_ssize_t> 1) << self.bits)
        cdef double* out = <double*> vector_out(theta, "theta", DOUBLE, self.entries(own, count))
        cdef int[2][WIDTH] index
        cdef Py_ssize_t[2] m
        cdef int turn = 0
        with nogil:
            for j in range(count):
                i = own[j]
                for d in range(1, self.size[i] + 1):
                    for h in range(self.size[i] + 1):
                        if h == d:
                            out[at] = -INFINITY
                        else:
                            m[turn] = self.arc(i, d, h, self.bits, index[turn])
                            for f in range(m[turn]):
                                ahead(weight + index[turn][f])
                            turn = 1 - turn
                            if last >= 0:
                                out[last] = scale() * total(weight, index[turn], m[turn])
                            last = at
                        at += 1
            if last >= 0:
                out[last] = scale() * total(weight, index[1 - turn], m[1 - turn])

    cdef const Py_ssize_t* listed(self, object part, Py_ssize_t count) except NULL:
        cdef const Py_ssize_t* own = <const Py_ssize_t*> vector(part, "part", INDEX, count)
        within(own, count, self.n, "part")
        return own

    cdef Py_ssize_t entries(self, const Py_ssize_t* part, Py_ssize_t count) noexcept nogil:
        cdef Py_ssize_t i, j, total = 0
        for j in range(count):
            i = j if part == NULL else part[j]
            total += self.size[i] * (self.size[i] + 1)
        return total


def _check_bits(int bits):
    if not 1 <= bits <= 31:
        raise ValueError(f"bits must lie between 1 and 31; got {bits}")
