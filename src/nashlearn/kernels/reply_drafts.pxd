from nashlearn.kernels.hashed_arcs cimport Sentences
from nashlearn.kernels.scratch cimport Block

cdef struct Kept:  # the replies of all sentences, see the shell
    double* arcs
    double* entropy
    double* weight
    double* gram
    Py_ssize_t slots
    Py_ssize_t total  # arcs of all sentences

cdef struct Draft:  # what a visit needs that depends on no weights
    Block room
    Py_ssize_t m  # replies with the new one
    Py_ssize_t count  # arcs in use
    double* products  # (m) of the new reply with all
    Py_ssize_t* place  # (count) where each arc is,
    Py_ssize_t* start  # (count + 1) where its features begin,
    int* index  # and all of them

# Where the arcs of the replies to sentence i are, the new one last, into row; their number.
cdef Py_ssize_t reply_rows(
    const Kept* kept, Py_ssize_t i, Py_ssize_t start, const double* reply, double** row
) noexcept nogil
# <r_j, Phi w> for each reply.
cdef void times(const Draft* draft, double** row, const double* w, double* products) noexcept nogil
# Add a step to the weights of the features of the arc t in use.
cdef void add(const Draft* draft, double* w, Py_ssize_t t, double step) noexcept nogil
# Where the arcs of each sentence begin, checked for some sentences.
cdef const Py_ssize_t* offsets(Sentences data, const Py_ssize_t* part, Py_ssize_t count, object offset) except NULL

cdef class Drafts:
    cdef readonly Sentences data
    cdef object given  # what the addresses below are of
    cdef const Py_ssize_t* part  # (count) the sentences
    cdef const Py_ssize_t* at  # where the arcs of each of all sentences begin
    cdef const double* reply  # the new replies, as arcs lie
    cdef Kept kept
    cdef Draft* drafts
    cdef Block table
    cdef Py_ssize_t count
    cdef Py_ssize_t room  # drafts that there is memory for

    cdef void forget(self)
    cdef int reserve(self, Py_ssize_t count) except -1
