"""The tempered game of a matrix, several rows at a time; see the header for what each function does."""

cdef extern from "matrix_blocks.h" nogil:
    ctypedef struct BlockMatrix:
        const double* rows
        const double* floor
        double scale
        Py_ssize_t options, k
    ctypedef struct BlockFacts "Block":
        double* top
        double* upper
        double* least
        double* gap
        double* entropy
    ctypedef struct MatrixBlock:
        BlockFacts facts
        double* begun
        double* open
        double* left
        double* best
        Py_ssize_t* row
        Py_ssize_t count
    Py_ssize_t matrix_block_room(Py_ssize_t options, Py_ssize_t k) noexcept
    void matrix_block_play(
        const BlockMatrix* L, const double* f, Py_ssize_t n, double m, double closed, bint cold, double* p, double* q,
        MatrixBlock* block
    ) noexcept
    void matrix_block_row(
        const BlockMatrix* L, const MatrixBlock* block, Py_ssize_t i, double* y, double* z, double* q, double* c
    ) noexcept
    void matrix_block_lay_out(MatrixBlock* block, Py_ssize_t options, Py_ssize_t k, double* room) noexcept
    void matrix_block_write(
        const BlockMatrix* L, const MatrixBlock* block, Py_ssize_t i, double* p, double* q
    ) noexcept
    bint matrix_block_wait(
        const BlockMatrix* L, const MatrixBlock* block, Py_ssize_t i, Py_ssize_t row, MatrixBlock* waiting
    ) noexcept
    void matrix_block_pairs(const BlockMatrix* L, double m, double closed, MatrixBlock* block) noexcept
