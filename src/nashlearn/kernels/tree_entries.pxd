"""The stage of a game over arborescences: what is known of a sentence, and which entries the game is played with."""

from nashlearn.kernels.scratch cimport Block
from nashlearn.kernels.tree_cuts cimport Flow
from nashlearn.kernels.tree_map cimport Workspace
from nashlearn.kernels.tree_projection cimport Cuts

cdef struct Stage:  # an entry is a token, a head and a label
    Py_ssize_t n, labels
    bint single_root
    const double* price  # (n) what a wrong head costs
    double mu, tol  # smoothing, and accuracy of the interior point method
    Workspace work
    Cuts cuts
    Flow flow
    double* theta  # (n, n + 1, labels) scores without what all trees share
    double* arc  # (n, n + 1) best score over labels
    double* other  # (n, n + 1)
    double* lift  # (n, n + 1) prices of the cuts that an arc crosses
    Py_ssize_t* label  # (n, n + 1) best label
    Py_ssize_t* heads  # (n)
    unsigned char* usable  # (n, n + 1) whether some tree holds the arc
    unsigned long long* dominators  # (n, (n + 63) // 64) of each token, bits
    unsigned char* take  # (n, n + 1, labels) whether the game is to be played with the entry
    Py_ssize_t m  # entries in play:
    Py_ssize_t* token  # (n (n + 1) labels)
    Py_ssize_t* head
    Py_ssize_t* kind
    Py_ssize_t K, most  # cuts of the game, and room for them
    unsigned char* sets  # (most, n)
    unsigned char* equality  # (most + 1)
    bint one  # whether there is a constraint before the cuts: a single arc from the root
    double* y  # (2, n) potentials of the rows
    double* lam  # (2, one + K) and of the constraints
    Block entries  # what the interior point method is told of entries and answers
    Block room  # and what it works with
    bint failed  # whether there was no memory for that

# Addresses from `at` on for games of n tokens and so many labels, which are set; where they end.
cdef size_t lay_stage(Stage* s, Py_ssize_t n, Py_ssize_t labels, size_t at) noexcept nogil
# Take the entries within `reach` of the best of their row, prices added.
cdef void take_near(Stage* s, double reach) noexcept nogil
# Take the entries that either player would use at the potentials of the game played without them.
cdef void take_priced(Stage* s, double slack) noexcept nogil
# Take the trees that the certificate has just found against either player: while there is a gap, one is new.
cdef void take_replies(Stage* s) noexcept nogil
# List the entries that are taken, without arcs that no tree among them holds, as the interior point method needs it.
cdef void list_entries(Stage* s) noexcept nogil
