"""The simplex method for matrix games, from the basis that an earlier row of scores has left."""

cdef struct Matrix:  # a cost matrix (options, k), less each column's smallest entry, over its largest
    const double* rows
    const double* columns  # its transpose
    const double* tilt  # one number for each row, generic
    const Py_ssize_t* lowest  # where a column's smallest entry is, at ties where the tilt is least

cdef struct Core:  # the basis that one row of scores leaves for the next, and room to work
    Py_ssize_t* state  # size of the core (0: none yet), pivots since N was computed
    Py_ssize_t* R
    Py_ssize_t* S
    Py_ssize_t* pivot
    double* N  # (most, most)
    double* B  # (most, most)
    double* y
    double* u
    double* t
    double* f  # the scores, written by the caller
    double* gain
    double* slack
    double* rate
    unsigned char* inside
    unsigned char* tight
    Py_ssize_t most, k, options

# A core laid out from the address on, whose state the caller sets to zeros before the first use.
cdef Core new_core(Py_ssize_t options, Py_ssize_t k, size_t* at) noexcept nogil
# Pivot until nothing gains, from the basis at hand or a pure strategy.
cdef void optimise(const Matrix* loss, Core* c) noexcept nogil
