"""Memory that a caller lends to kernels: taken once for a call and a thread, given back whatever happens.

A function that lays out its room takes an address and moves it on. Called with address 0 it measures:

    cdef size_t at = 0
    doubles(&at, k)
    indices(&at, k)     # at is now the number of bytes
"""

cdef class Scratch:
    cdef void* at

# Memory for what is not known before the work has begun: begins as (NULL, 0), grows, and its owner frees it.
cdef struct Block:
    void* at
    size_t size

# See that a block has so many bytes, whose content is unspecified then; False where there is no memory for them.
cdef bint ask(Block* block, size_t size) noexcept nogil

cdef inline double* doubles(size_t* at, Py_ssize_t n) noexcept nogil:
    cdef size_t here = at[0]
    at[0] = here + <size_t> n * sizeof(double)
    return <double*> here

cdef inline Py_ssize_t* indices(size_t* at, Py_ssize_t n) noexcept nogil:
    cdef size_t here = at[0]
    at[0] = here + <size_t> n * sizeof(Py_ssize_t)
    return <Py_ssize_t*> here

# Bytes; what follows them is aligned again.
cdef inline unsigned char* marks(size_t* at, Py_ssize_t n) noexcept nogil:
    cdef size_t here = at[0]
    at[0] = here + (<size_t> n + 7) // 8 * 8
    return <unsigned char*> here
