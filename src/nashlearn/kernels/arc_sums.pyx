"""Sums of hashed features of weighted arcs, ``w += sum_i omega_i Phi_i' q_i``, in an order that a cache likes.

The features of one arc lie all over millions of weights. Those of some sentences are first listed in order of the part
of the weights that holds them; then a part stays in a processor's cache while all lists are added to it. Lists can be
made, and parts be added to, by several threads; each weight gets its terms in the order of the sentences.
"""

from libc.stdlib cimport free
from nashlearn.kernels.checks cimport DOUBLE, vector, vector_out
from nashlearn.kernels.hashed_arcs cimport WIDTH, Sentences, scale
from nashlearn.kernels.scratch cimport Block, ask, doubles, indices

cdef enum:
    _BITS = 5
    _PARTS = 1 << _BITS

PARTS = _PARTS  # of the weights


cdef struct Term:
    int index  # of a feature
    int arc  # that has it, among those in use


cdef class Terms:
    """What the arcs of the sentences ``first`` to ``last`` add to the weights, listed part by part.

    ``omega`` are the weights of all sentences, and ``q`` the entries of these, which lie as their scores do.
    """

    cdef object given
    cdef Sentences data
    cdef Block found  # features as they are met,
    cdef Block room  # and in order
    cdef double* step  # of each arc
    cdef Term* term
    cdef Py_ssize_t[_PARTS + 1] bounds

    def __cinit__(self, Sentences data not None, Py_ssize_t first, Py_ssize_t last, omega, q):
        cdef Py_ssize_t i, entries = 0
        cdef const double* share = <const double*> vector(omega, "omega", DOUBLE, data.n)
        cdef const double* entry
        cdef bint enough
        if not 0 <= first <= last <= data.n:
            raise ValueError(f"first and last must lie in 0..{data.n} in this order; got {first} and {last}")
        for i in range(first, last):
            entries += data.size[i] * (data.size[i] + 1)
        entry = <const double*> vector(q, "q", DOUBLE, entries)
        self.data, self.given = data, (data, first, last, omega, q)
        with nogil:
            enough = self.listed(first, last, share, entry, entries)
        if not enough:
            raise MemoryError()

    def __dealloc__(self):
        free(self.found.at)
        free(self.room.at)

    def __reduce__(self):
        return Terms, self.given

    cdef bint listed(
        self, Py_ssize_t first, Py_ssize_t last, const double* share, const double* entry, Py_ssize_t entries
    ) noexcept nogil:
        cdef int bits = self.data.bits, shift = max(bits - _BITS, 0)
        cdef Py_ssize_t i, d, h, f, to, part, t = 0, at = 0, count = 0
        cdef size_t place
        cdef Py_ssize_t* bounds = self.bounds
        cdef Py_ssize_t* start
        cdef int* seen
        for at in range(entries):
            count += entry[at] != 0.0
        if not ask(&self.found, <size_t> (2 * count + 1) * sizeof(double) + <size_t> count * WIDTH * sizeof(int)):
            return False
        place, at = <size_t> self.found.at, 0
        start, self.step = indices(&place, count + 1), doubles(&place, count)
        seen, start[0] = <int*> place, 0
        for i in range(first, last):
            for d in range(1, self.data.size[i] + 1):
                for h in range(self.data.size[i] + 1):
                    if entry[at] != 0.0:
                        self.step[t] = share[i] * entry[at] * scale()
                        start[t + 1] = start[t] + self.data.arc(i, d, h, bits, seen + start[t])
                        t += 1
                    at += 1
        if not ask(&self.room, <size_t> start[count] * sizeof(Term)):
            return False
        self.term = <Term*> self.room.at
        for f in range(start[count]):
            bounds[(seen[f] >> shift) + 1] += 1
        for part in range(1, _PARTS + 1):
            bounds[part] += bounds[part - 1]
        for t in range(count):
            for f in range(start[t], start[t + 1]):
                part = seen[f] >> shift
                to = bounds[part]
                self.term[to].index, self.term[to].arc = seen[f], <int> t
                bounds[part] += 1
        for part in range(_PARTS, 0, -1):  # each has moved on to where the next begins
            bounds[part] = bounds[part - 1]
        bounds[0] = 0
        return True

    def add(self, w, Py_ssize_t part):
        """Add the terms of the weights of one part."""
        cdef double* weight = <double*> vector_out(w, "w", DOUBLE, (<Py_ssize_t> 1) << self.data.bits)
        cdef Py_ssize_t* bounds = self.bounds
        cdef Py_ssize_t f
        if not 0 <= part < _PARTS:
            raise ValueError(f"part must lie in 0..{_PARTS - 1}; got {part}")
        with nogil:
            for f in range(bounds[part], bounds[part + 1]):
                weight[self.term[f].index] += self.step[self.term[f].arc]
