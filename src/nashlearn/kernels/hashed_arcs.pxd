"""Sentences whose arcs have hashed features, for kernels that read them."""

from libc.stdint cimport uint64_t

cdef extern from "ahead.h" nogil:
    void ahead(const void* place)

cdef enum:
    FURTHER = 6  # attributes that a token may have besides the five of the treebank
    BETWEEN = 28  # tags between two tokens that count
    WIDTH = 66 + 10 * FURTHER + BETWEEN + 2  # no arc has more features

cdef inline double scale() noexcept nogil:  # the value of a present feature: arcs have a norm near 1
    return 0.125

# The sum of the weights of m features, in four that do not wait for each other.
cdef inline double total(const double* weight, const int* index, Py_ssize_t m) noexcept nogil:
    cdef double a = 0.0, b = 0.0, c = 0.0, d = 0.0
    cdef Py_ssize_t f
    for f in range(0, m - 3, 4):
        a += weight[index[f]]
        b += weight[index[f + 1]]
        c += weight[index[f + 2]]
        d += weight[index[f + 3]]
    for f in range(m - m % 4, m):
        a += weight[index[f]]
    return (a + b) + (c + d)

cdef class Sentences:
    cdef object kept
    cdef const uint64_t* code  # (rows, columns)
    cdef const Py_ssize_t* tag
    cdef const Py_ssize_t* first
    cdef const Py_ssize_t* size
    cdef readonly Py_ssize_t n  # sentences
    cdef Py_ssize_t columns
    cdef readonly int bits

    # Indices below 2^bits of the features of the arc h -> d of sentence i into out, which has room for WIDTH; their
    # number. d = 1..size is a token, h = 0..size a token or the root.
    cdef Py_ssize_t arc(self, Py_ssize_t i, Py_ssize_t d, Py_ssize_t h, int bits, int* out) noexcept nogil
    # The address of indices of sentences, checked.
    cdef const Py_ssize_t* listed(self, object part, Py_ssize_t count) except NULL
    # Arcs of the sentences listed, or of the first count where part is NULL.
    cdef Py_ssize_t entries(self, const Py_ssize_t* part, Py_ssize_t count) noexcept nogil
