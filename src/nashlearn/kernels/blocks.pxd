"""Several rows at a time; see the header for what each function does."""

cdef extern from "blocks.h" nogil:
    enum:
        BLOCK
    ctypedef struct Block:
        double* top
        double* upper
        double* least
        double* gap
        double* entropy
    void block_zero_one(
        const double* f, Py_ssize_t n, Py_ssize_t k, double mu, double* p, double* q, Block* block, double* room
    ) noexcept
    void block_zero_one_steps(
        const double* f, const double* middle, Py_ssize_t n, Py_ssize_t k, double mu, double* q, unsigned char* tight,
        Block* block, double* room
    ) noexcept
    void block_zero_one_plain(
        const double* f, Py_ssize_t n, Py_ssize_t k, double* p, double* q, Block* b, double* room
    ) noexcept
