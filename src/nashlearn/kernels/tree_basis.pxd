"""A basis of the game over arborescences, and the strategies that belong to it."""

cdef struct Side:  # what one player chooses, and what the other pays for it; all of it linear in the right side
    double* x  # (n, n + 1) the strategy, 0 where an arc is not held
    double* price  # (n, n + 1) sum of the other's potentials over the constraints of an arc
    double* excess  # (n, n + 1) by how much the other loses by an arc, 0 where the other holds it
    double* lam  # (1 + room) the other's potentials of constraints, positive for cuts
    double* slack  # (1 + room) of this player's cuts

cdef struct Basis:  # player 0 is the predictor, 1 the adversary; constraint 0 is the single root, then come the cuts
    Py_ssize_t n, K, room, size, most  # K cuts of room; the system has `size` unknowns of `most`
    double* theta  # (n, n + 1) scores, 0 where an arc is not allowed
    double weight  # what a wrong head costs, w
    double* inner  # (1 + room, n + 1) tokens of each cut as 0 and 1, after a 0 for the root
    double* allowed  # (n, n + 1) whether an arc is, 0 or 1
    double* held[2]  # (n, n + 1) whether a player may use it, 0 or 1: without branches in the inner loops
    unsigned char* tight[2]  # (1 + room) constraints that a player meets with equality
    Py_ssize_t* equation[2]  # (most) constraints c of a player, then arcs a that only the other holds, as -1 - a
    double* share[2]  # (n, most) of rows in them
    double* depth  # (n) and of rows in themselves
    double* system  # (size, size); rows of `most` numbers while the face is made independent
    Py_ssize_t* pivot  # (most)
    double* right  # (most)
    double* row  # (n)
    double* f  # (n, n + 1)
    double* b  # (n + 1 + room)
    Py_ssize_t* crossed  # (1 + room)
    Py_ssize_t* around[2]  # (1 + room)
    Side at[2]
    Side step

cdef size_t lay_basis(Basis* basis, Py_ssize_t n, size_t at) noexcept nogil

# Whether an arc counts in a constraint.
cdef inline bint crosses(const Basis* basis, Py_ssize_t c, Py_ssize_t d, Py_ssize_t h) noexcept nogil:
    cdef const double* inner = basis.inner + c * (basis.n + 1)
    return h == 0 if c == 0 else inner[d + 1] > 0.0 and not inner[h] > 0.0

# Sums over the constraints of each arc of potentials y (n) of rows and lam (1 + room) of constraints, into out.
cdef void price_arcs(const Basis* basis, const double* y, const double* lam, double* out) noexcept nogil
# Set up and factor the system of the basis; False where it is singular or too large.
cdef bint factor_basis(Basis* basis) noexcept nogil
# Solve for a side: w x - price = f on the arcs that the other holds, rows and tight constraints sum to b (rows first).
# An arc `entering` that is not held has x = 1 whatever f and b say.
cdef void solve_side(Basis* basis, Py_ssize_t player, Py_ssize_t entering, Side* out) noexcept nogil
