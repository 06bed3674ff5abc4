"""The game over arborescences, one sentence at a time."""

from nashlearn.kernels.scratch cimport Scratch
from nashlearn.kernels.tree_basis cimport Basis
from nashlearn.kernels.tree_entries cimport Stage

cdef struct Outcome:  # of a sentence: what q secures, and by how much p may lose more
    double value
    double gap  # inf where no tree is allowed
    double entropy  # what q secures beside the scores
    double risk  # and of that min_p <p, L q>

cdef class TreeSolver:  # of sentences of n tokens and so many labels; each thread has its own
    cdef Stage stage
    cdef Basis basis
    cdef Scratch memory
    # Play the game of scores (n, n + 1, labels), writing both strategies; price (n) is what a wrong head costs. Sets
    # stage.failed where memory is lacking.
    cdef Outcome solve(
        self, const double* scores, const double* price, double mu, double tol, double* q, double* p
    ) noexcept nogil
