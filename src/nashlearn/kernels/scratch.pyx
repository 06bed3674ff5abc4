"""The owner of scratch memory, and blocks that grow."""

from libc.stdlib cimport free, malloc


cdef class Scratch:
    """So many bytes, aligned as malloc aligns, freed with the object. Their content is unspecified."""

    def __cinit__(self, size_t size):
        self.at = malloc(size + 8)  # never nothing, which malloc may answer with NULL
        if self.at == NULL:
            raise MemoryError()

    def __dealloc__(self):
        free(self.at)


cdef bint ask(Block* block, size_t size) noexcept nogil:
    if block.at != NULL and size <= block.size:
        return True
    free(block.at)
    block.size = size + size // 2 + 8  # half as much again: the next wish is seldom the last
    block.at = malloc(block.size)
    if block.at == NULL:
        block.size = 0
        return False
    return True
