"""The owner of scratch memory."""

from libc.stdlib cimport free, malloc


cdef class Scratch:
    """So many bytes, aligned as malloc aligns, freed with the object. Their content is unspecified."""

    def __cinit__(self, size_t size):
        self.at = malloc(size + 8)  # never nothing, which malloc may answer with NULL
        if self.at == NULL:
            raise MemoryError()

    def __dealloc__(self):
        free(self.at)
