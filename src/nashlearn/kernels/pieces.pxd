"""The proximal step of one matrix and one ``a`` at many points, by the pieces on which it is affine."""

from libc.stdint cimport uint64_t

cdef struct Pieces:  # those that were met so far
    const double* L  # (options, k)
    Py_ssize_t options, k
    double a
    double tol  # by which a label may gain, or an option lack, that is out of play
    Py_ssize_t width  # numbers that a piece yields, filled up to whole vectors
    Py_ssize_t met  # pieces
    Py_ssize_t count, most  # those with a map, and those that there is room for
    Py_ssize_t slots  # of the table, a power of 2 that exceeds them
    uint64_t last  # where the last step ended
    uint64_t* keys  # (slots,) labels and options in play, 0 where there is none
    Py_ssize_t* places  # (slots,) whose map is where, -1 where those in play determine none
    double* maps  # (most, k + 1, width)
    double* z  # (width,) the numbers of a piece
    double* g  # (k,) for these entries of g, less the largest
    double* x  # (k,)
    double* c  # (k,)
    void* room  # of a proximal step

# Whether there are so few options and labels that pieces pay.
cdef bint few_pieces(Py_ssize_t options, Py_ssize_t k) noexcept nogil
# Bytes of room for pieces.
cdef size_t pieces_room(Py_ssize_t options, Py_ssize_t k) noexcept nogil
# No pieces yet, laid out in the room; L stays with the caller.
cdef Pieces* no_pieces(Py_ssize_t options, Py_ssize_t k, const double* L, double a, void* room) noexcept nogil
# Overwrite q and p, whose supports say where to look first, with the proximal step of g; False, and nothing written,
# where that was not found.
cdef bint step_in_piece(Pieces* c, const double* g, double* q, double* p) noexcept nogil
# Say where a row that tells nothing of its own begins: at these supports.
cdef void begin_at(Pieces* c, const double* q, const double* p) noexcept nogil
