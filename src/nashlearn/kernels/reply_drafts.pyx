"""What visits to sentences need that depends on no weights: it may be drafted for many of them in threads.

A visit (:mod:`nashlearn.kernels.block_replies`) adds a reply to those that a sentence has. Drafted are the features of
the arcs that any of these holds, and the products of the new reply with all.
"""

from libc.stdlib cimport calloc, free
from nashlearn.kernels.checks cimport DOUBLE, INDEX, cube_out, extent, matrix_out, vector, vector_out
from nashlearn.kernels.hashed_arcs cimport WIDTH, Sentences, scale
from nashlearn.kernels.scratch cimport Scratch, ask, doubles, indices


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


cdef inline double _sum(
    const double* w, const int* index, Py_ssize_t first, Py_ssize_t last, double total
) noexcept nogil:
    """``total`` plus the weights of the features ``first`` to ``last``."""
    cdef Py_ssize_t f
    for f in range(first, last):
        total += w[index[f]]
    return total


cdef void times(const Draft* draft, double** row, const double* w, double* products) noexcept nogil:
    """``<r_j, Phi w>`` for each reply."""
    cdef Py_ssize_t t, s, f, j, n, together
    cdef const int* index
    cdef const Py_ssize_t* length
    cdef double score[4]
    cdef double s0, s1, s2, s3
    for j in range(draft.m):
        products[j] = 0.0
    for t in range(0, draft.count, 4):
        index, length, n = draft.index + t * WIDTH, draft.length + t, min(<Py_ssize_t> 4, draft.count - t)
        together, s0, s1, s2, s3 = 0, 0.0, 0.0, 0.0, 0.0
        if n == 4:  # four sums, which do not wait for each other
            together = min(min(length[0], length[1]), min(length[2], length[3]))
            for f in range(together):
                s0 += w[index[f]]
                s1 += w[index[WIDTH + f]]
                s2 += w[index[2 * WIDTH + f]]
                s3 += w[index[3 * WIDTH + f]]
        score[0], score[1], score[2], score[3] = s0, s1, s2, s3
        for s in range(n):
            score[s] = scale() * _sum(w, index + s * WIDTH, together, length[s], score[s])
            for j in range(draft.m):
                products[j] += score[s] * row[j][draft.place[t + s]]


cdef void add(const Draft* draft, double* w, Py_ssize_t t, double step) noexcept nogil:
    """Add a step to the weights of the features of the arc ``t`` in use."""
    cdef Py_ssize_t f
    cdef const int* index = draft.index + t * WIDTH
    for f in range(draft.length[t]):
        w[index[f]] += step


cdef bint draft_one(
    Sentences data, Py_ssize_t i, double** row, Py_ssize_t m, double* change, Draft* draft
) noexcept nogil:
    """Features of the arcs that some of ``m`` replies hold, and the products of the last with all; False: no memory."""
    cdef Py_ssize_t n = data.size[i], a, t, f, count = 0
    cdef size_t at
    for a in range(n * (n + 1)):
        count += _used(row, m, a)
    draft.m = 0
    if not ask(&draft.room, (<size_t> m + 2 * count) * sizeof(double) + <size_t> count * WIDTH * sizeof(int)):
        return False
    at = <size_t> draft.room.at
    draft.i, draft.m, draft.count = i, m, count
    draft.products, draft.place, draft.length = doubles(&at, m), indices(&at, count), indices(&at, count)
    draft.index, t = <int*> at, 0
    for a in range(n * (n + 1)):
        if _used(row, m, a):
            draft.length[t] = data.arc(i, a // (n + 1) + 1, a % (n + 1), data.bits, draft.index + t * WIDTH)
            draft.place[t] = a
            t += 1
    for t in range(count):
        if row[m - 1][draft.place[t]] != 0.0:
            add(draft, change, t, scale() * row[m - 1][draft.place[t]])
    times(draft, row, change, draft.products)
    for t in range(count):
        for f in range(draft.length[t]):
            change[draft.index[t * WIDTH + f]] = 0.0
    return True


cdef const Py_ssize_t* offsets(Sentences data, object offset) except NULL:
    """Where the arcs of each sentence begin, checked against its size."""
    cdef const Py_ssize_t* at = <const Py_ssize_t*> vector(offset, "offset", INDEX, data.n + 1)
    cdef Py_ssize_t i
    cdef bint fits = at[0] == 0
    for i in range(data.n):
        fits &= at[i + 1] - at[i] == data.size[i] * (data.size[i] + 1)
    if not fits:
        raise ValueError("offset must tell where the arcs of each sentence begin")
    return at


cdef int take_kept(
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
    """What visits of the sentences ``part`` need that depends on no weights: no sentence may occur twice."""

    def __cinit__(self, Sentences data not None, part):
        self.data, self.count, self.part = data, extent(part, "part", 0), part
        data.listed(part, self.count)
        if len(set(part.tolist())) != self.count:
            raise ValueError("part must name each sentence once where visits are drafted before")
        self.drafts = <Draft*> calloc(self.count + 1, sizeof(Draft))  # never nothing
        if self.drafts == NULL:
            raise MemoryError()

    def __dealloc__(self):
        cdef Py_ssize_t j
        if self.drafts != NULL:
            for j in range(self.count):
                free(self.drafts[j].room.at)
            free(self.drafts)

    def __reduce__(self):
        return Drafts, (self.data, self.part)

    def prepare(self, Py_ssize_t first, Py_ssize_t last, offset, reply, arcs, entropy, weight, gram, change):
        """Draft the visits ``first`` to ``last`` of the part; the other arguments are those of a visit."""
        cdef Sentences data = self.data
        cdef Py_ssize_t j, m, weights = (<Py_ssize_t> 1) << data.bits
        cdef const Py_ssize_t* own = data.listed(self.part, self.count)
        cdef const Py_ssize_t* at = offsets(data, offset)
        cdef const double* given = <const double*> vector(reply, "reply", DOUBLE, at[data.n])
        cdef double* passing = <double*> vector_out(change, "change", DOUBLE, weights)
        cdef bint enough = True
        cdef Kept kept
        if not 0 <= first <= last <= self.count:
            raise ValueError(f"first and last must lie in 0..{self.count} in this order; got {first} and {last}")
        take_kept(&kept, arcs, entropy, weight, gram, data, at[data.n])
        cdef Scratch room = Scratch((kept.slots + 1) * sizeof(double*))
        cdef double** row = <double**> room.at
        with nogil:
            for j in range(first, last):
                m = reply_rows(&kept, own[j], at[own[j]], given, row)
                enough = enough and draft_one(data, own[j], row, m, passing, self.drafts + j)
        if not enough:
            raise MemoryError()
