"""Cuts of the arborescence polytope: sets S of tokens with x(arcs into S) < 1."""

cdef struct Flow:  # the search over the root, 0, and the tokens 1..n
    double* residual  # (n + 1, n + 1) capacity left to the first index from the second
    double* inflow  # (n + 1) sum of the arcs from the merged root
    double* feed  # (n + 1) and of those that are positive, their capacity; 0 to what is merged with it
    double* supply  # (n + 1) what is left of that
    Py_ssize_t* near  # (n + 1, n + 1) neighbours of each node, both ways
    Py_ssize_t* degree  # (n + 1)
    Py_ssize_t* previous  # (n + 1) breadth-first predecessor, -1 where not reached
    Py_ssize_t* queue  # (n + 1)
    unsigned char* source  # (n + 1) whether merged with the root

# Room for flows among up to n tokens, laid out from the address on.
cdef Flow new_flow(Py_ssize_t n, size_t* at) noexcept nogil
# Violated cuts of x (n, n + 1), whose rows sum to 1, into members (room, n); their number, at most n.
cdef Py_ssize_t separate(
    const double* x, Py_ssize_t n, unsigned char* members, Py_ssize_t room, double tol, const Flow* flow
) noexcept nogil
