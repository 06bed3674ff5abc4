"""What visits to sentences need that depends on no weights: it may be drafted for many of them in threads.

A visit (:mod:`nashlearn.kernels.block_replies`) adds a reply to those that a sentence has. Drafted are the features of
the arcs that any of these holds, and the products of the new reply with all.
"""

from libc.stdlib cimport free, realloc
from libc.string cimport memset
from nashlearn.kernels.checks cimport DOUBLE, INDEX, cube_out, extent, matrix_out, vector
from nashlearn.kernels.hashed_arcs cimport WIDTH, Sentences, ahead, scale, total
from nashlearn.kernels.scratch cimport Block, Scratch, ask, doubles, indices

cdef enum:
    _AHEAD = 4  # arcs whose weights are on their way while those of another are read


cdef Py_ssize_t reply_rows(
    const Kept* kept, Py_ssize_t i, Py_ssize_t start, const double* reply, double** row
) noexcept nogil:
    """Where the arcs of the replies to sentence ``i`` are, the new one last; their number."""
    cdef Py_ssize_t m = 0
    while m < kept.slots and kept.weight[i * kept.slots + m] > 0.0:
        row[m] = kept.arcs + m * kept.total + start
        m += 1
    row[m] = <double*> reply + start  # is read only
    return m + 1


cdef bint _used(double** row, Py_ssize_t m, Py_ssize_t a) noexcept nogil:
    """Whether some of ``m`` replies hold the arc."""
    cdef Py_ssize_t j
    for j in range(m):
        if row[j][a] != 0.0:
            return True
    return False


cdef inline void _call(const Draft* draft, const double* w, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
    """Ask for the weights of the arcs ``first`` to ``last`` in use, which are read next."""
    cdef Py_ssize_t f
    for f in range(draft.start[min(first, draft.count)], draft.start[min(last, draft.count)]):
        ahead(w + draft.index[f])


cdef void times(const Draft* draft, double** row, const double* w, double* products) noexcept nogil:
    """``<r_j, Phi w>`` for each reply."""
    cdef Py_ssize_t t, j
    cdef double score
    for j in range(draft.m):
        products[j] = 0.0
    _call(draft, w, 0, _AHEAD)
    for t in range(draft.count):
        _call(draft, w, t + _AHEAD, t + _AHEAD + 1)
        score = scale() * total(w, draft.index + draft.start[t], draft.start[t + 1] - draft.start[t])
        for j in range(draft.m):
            products[j] += score * row[j][draft.place[t]]


cdef void add(const Draft* draft, double* w, Py_ssize_t t, double step) noexcept nogil:
    """Add a step to the weights of the features of the arc ``t`` in use."""
    cdef Py_ssize_t f
    _call(draft, w, t + _AHEAD, t + _AHEAD + 1)
    for f in range(draft.start[t], draft.start[t + 1]):
        w[draft.index[f]] += step


cdef inline Py_ssize_t _slot(const int* key, Py_ssize_t mask, int index) noexcept nogil:
    """Where a feature is in a table, or has its place there: keys are features plus 1, and 0 where nothing is."""
    cdef Py_ssize_t at = index & mask
    while (key[at] != 0) & (key[at] != index + 1):  # one branch, seldom taken
        at = (at + 1) & mask
    return at


cdef bint _multiply(const Draft* draft, double** row, int bits, Block* table) noexcept nogil:
    """The products of the last reply with all; False: no memory.

    ``Phi' r`` of the last is put in a table that stays in a cache, of four times as many places as it has features, or
    one for each weight.
    """
    cdef Py_ssize_t m = draft.m, t, j, f, at, mask = 64, features = 0
    cdef const double* last = row[m - 1]
    cdef int* key
    cdef double* value
    cdef double step, score
    for t in range(draft.count):
        features += draft.start[t + 1] - draft.start[t] if last[draft.place[t]] != 0.0 else 0
    while mask < 4 * features and mask < (<Py_ssize_t> 1) << bits:
        mask *= 2
    if not ask(table, <size_t> mask * (sizeof(int) + sizeof(double))):
        return False
    value = <double*> table.at
    key = <int*> (value + mask)
    memset(table.at, 0, <size_t> mask * (sizeof(int) + sizeof(double)))
    mask -= 1
    for t in range(draft.count):
        step = scale() * last[draft.place[t]]
        if step != 0.0:
            for f in range(draft.start[t], draft.start[t + 1]):
                at = _slot(key, mask, draft.index[f])
                value[at] += step
                key[at] = draft.index[f] + 1
    for j in range(m):
        draft.products[j] = 0.0
    for t in range(draft.count):
        score = 0.0
        for f in range(draft.start[t], draft.start[t + 1]):
            score += value[_slot(key, mask, draft.index[f])]  # 0 where nothing is
        for j in range(m):
            draft.products[j] += scale() * score * row[j][draft.place[t]]
    return True


cdef bint _draft_one(
    Sentences data, Py_ssize_t i, double** row, Py_ssize_t m, Block* table, Draft* draft
) noexcept nogil:
    """Features of the arcs that some of ``m`` replies hold, and the products of the last with all; False: no memory."""
    cdef Py_ssize_t n = data.size[i], a, t = 0, count = 0, features
    cdef size_t at
    for a in range(n * (n + 1)):
        count += _used(row, m, a)
    draft.m = 0
    if not ask(&draft.room, (<size_t> m + 2 * count + 1) * sizeof(double) + <size_t> count * WIDTH * sizeof(int)):
        return False
    at = <size_t> draft.room.at
    draft.count = count
    draft.products, draft.place, draft.start = doubles(&at, m), indices(&at, count), indices(&at, count + 1)
    draft.index, draft.start[0] = <int*> at, 0
    for a in range(n * (n + 1)):
        if _used(row, m, a):
            features = data.arc(i, a // (n + 1) + 1, a % (n + 1), data.bits, draft.index + draft.start[t])
            draft.place[t], draft.start[t + 1] = a, draft.start[t] + features
            t += 1
    draft.m = m
    if not _multiply(draft, row, data.bits, table):
        draft.m = 0
        return False
    return True


cdef const Py_ssize_t* offsets(Sentences data, const Py_ssize_t* part, Py_ssize_t count, object offset) except NULL:
    """Where the arcs of each sentence begin, checked for the sentences ``part``."""
    cdef const Py_ssize_t* at = <const Py_ssize_t*> vector(offset, "offset", INDEX, data.n + 1)
    cdef Py_ssize_t i, j
    cdef bint fits = at[0] == 0 and at[data.n] >= 0
    for j in range(count):
        i = part[j]
        fits &= at[i] >= 0 and at[i + 1] <= at[data.n]
        fits &= at[i + 1] - at[i] == data.size[i] * (data.size[i] + 1)
    if not fits:
        raise ValueError("offset must tell where the arcs of each sentence begin")
    return at


cdef int _take_kept(
    Kept* kept, object arcs, object entropy, object weight, object gram, Sentences data, Py_ssize_t total
) except -1:
    """The replies that are kept, checked."""
    kept.slots, kept.total = extent(arcs, "arcs", 0), total
    if kept.slots < 1:
        raise ValueError("arcs must have room for a reply")
    kept.arcs = <double*> matrix_out(arcs, "arcs", DOUBLE, kept.slots, kept.total)
    kept.entropy = <double*> matrix_out(entropy, "entropy", DOUBLE, data.n, kept.slots)
    kept.weight = <double*> matrix_out(weight, "weight", DOUBLE, data.n, kept.slots)
    kept.gram = <double*> cube_out(gram, "gram", DOUBLE, data.n, kept.slots, kept.slots)
    return 0


cdef class Drafts:
    """What visits of some sentences need that depends on no weights; memory is kept from one part to the next."""

    def __cinit__(
        self, Sentences data not None, part=None, offset=None, reply=None, arcs=None, entropy=None, weight=None, gram=None
    ):
        self.data, self.given = data, ()
        if part is not None:
            self.prepare(part, offset, reply, arcs, entropy, weight, gram)

    def __dealloc__(self):
        cdef Py_ssize_t j
        for j in range(self.room):
            free(self.drafts[j].room.at)
        free(self.drafts)
        free(self.table.at)

    def __reduce__(self):
        return Drafts, (self.data, *self.given)

    cdef void forget(self):
        self.given, self.count = (), 0

    cdef int reserve(self, Py_ssize_t count) except -1:
        cdef Draft* more
        if count > self.room:
            more = <Draft*> realloc(self.drafts, <size_t> count * sizeof(Draft))
            if more == NULL:
                raise MemoryError()
            self.drafts = more
            memset(more + self.room, 0, <size_t> (count - self.room) * sizeof(Draft))
            self.room = count
        return 0

    def prepare(self, part, offset, reply, arcs, entropy, weight, gram):
        """Forget all drafts and make those of a visit to the sentences ``part``, none of which may occur twice.

        ``reply`` holds the new reply to each sentence, and the last four are those that are kept: ``arcs`` (slots, all
        arcs), ``entropy`` and ``weight`` (sentences, slots) and ``gram`` (sentences, slots, slots), those of positive
        weight in the first slots. The visit will change them.
        """
        cdef Sentences data = self.data
        cdef Py_ssize_t j, m, count = extent(part, "part", 0)
        cdef bint enough = True
        self.forget()
        self.part = data.listed(part, count)
        self.at = offsets(data, self.part, count, offset)
        self.reply = <const double*> vector(reply, "reply", DOUBLE, self.at[data.n])
        _take_kept(&self.kept, arcs, entropy, weight, gram, data, self.at[data.n])
        if len(set(part.tolist())) != count:
            raise ValueError("part must name each sentence once: its visits are drafted before the first")
        self.reserve(count)
        cdef Scratch room = Scratch((self.kept.slots + 1) * sizeof(double*))
        cdef double** row = <double**> room.at
        with nogil:
            for j in range(count):
                m = reply_rows(&self.kept, self.part[j], self.at[self.part[j]], self.reply, row)
                enough = enough and _draft_one(data, self.part[j], row, m, &self.table, self.drafts + j)
        if not enough:
            raise MemoryError()
        self.given, self.count = (part, offset, reply, arcs, entropy, weight, gram), count
