"""Games over rows of simplices cut by further constraints, and Newton's step towards their central path."""

cdef struct Saddle:  # a game; see the module interior for what it is
    Py_ssize_t m, R, K  # entries, rows, constraints
    const double* reward  # (m)
    const double* cost  # (m)
    const double* weight  # (m) the diagonal of W, not negative
    double mu_p, mu_q  # quadratic smoothing of either player, not negative
    const Py_ssize_t* row  # (m) the row of each entry, -1 for an entry in none
    const Py_ssize_t* first  # (m + 1) entry e occurs in the constraints member[first[e] : first[e + 1]]
    const Py_ssize_t* member
    const unsigned char* equality  # (K) whether a constraint asks for 1, or for at least 1

# An iterate, a direction or a residual. The first half of each array is the predictor's, the second the adversary's.
cdef struct Point:
    double* x  # (2, m) strategies; of a residual: stationarity
    double* z  # (2, m) their multipliers, >= 0; of a residual: complementarity of x and z
    double* y  # (2, R) potentials of the rows; of a residual: sums of the rows
    double* lam  # (2, K) potentials of the constraints, >= 0 for inequalities; of a residual: their sums
    double* s  # (2, K) slacks of the inequalities; of a residual: complementarity of lam and s

cdef struct System:  # the eliminated Newton system; (u, w, v) stands for the block [[u, w], [-w, v]]
    double* inverse  # (2, m) 1 / x
    double* entry  # (3, m) inverse blocks of the entries
    double* row  # (3, R) inverse blocks of the rows
    double* coupling  # (2K, 2R) constraints by rows
    double* through  # (2R, 2K) its transpose, times the inverse blocks of the rows
    double* product  # (2K, 2K) of the two
    double* schur  # (2K, 2K) factors of the constraints' system
    double* right  # (2K)
    double* paid  # (2, R)
    Py_ssize_t* pivot  # (2K)

# Both laid out from the address on; their content is unspecified.
cdef Point new_point(Py_ssize_t m, Py_ssize_t R, Py_ssize_t K, size_t* at) noexcept nogil
cdef System new_system(Py_ssize_t m, Py_ssize_t R, Py_ssize_t K, size_t* at) noexcept nogil
# What the rows (2, R) and the constraints (2, K) of x (2, m) sum to.
cdef void sums(const Saddle* game, const double* x, double* rows, double* constraints) noexcept nogil
# Eliminate entries and rows at an iterate, and factor what is left; False where it is singular.
cdef bint factor(const Saddle* game, const Point* at, System* system) noexcept nogil
# Newton's step towards what lack names, by back substitution; slacks of equalities are left as they are.
cdef void direction(
    const Saddle* game, const Point* at, const Point* lack, System* system, Point* step
) noexcept nogil
