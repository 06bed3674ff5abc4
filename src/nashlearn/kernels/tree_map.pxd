"""Best spanning arborescences. Scores (n, n + 1) are packed row by row: token d = 0..n-1, head h = 0..n, 0 the root."""

cdef struct Workspace:  # of one search; components are tokens, then contracted sets
    double* value  # (n, n + 1) best arc from each source into the component that owns the row, less what was paid
    double* paid  # (2n) value of the arc chosen for a component
    Py_ssize_t* source  # (2n) and its source
    Py_ssize_t* end  # (2n) and its token
    Py_ssize_t* row  # (2n) row of a component
    Py_ssize_t* parent  # (2n) contracted set that a component went into, or -1
    Py_ssize_t* state  # (2n) 0 new, 1 on the path, 2 tied to the root
    Py_ssize_t* top  # (n) component of a token
    Py_ssize_t* path  # (n)
    int* token  # (n, n + 1) the token at which the arc of `value` ends
    unsigned char* settled  # (2n)

# A workspace for sentences of up to n tokens, laid out from the address on.
cdef Workspace new_workspace(Py_ssize_t n, size_t* at) noexcept nogil
# Heads of a best tree of scores (n, n + 1); the number of components, or 0 where there is no tree. The count is n
# where greedy heads sufficed. scores[d, d + 1] is not read; -inf forbids an arc. Cost: O(n^2).
cdef Py_ssize_t best_tree(
    const double* scores, Py_ssize_t n, bint single_root, Py_ssize_t* heads, const Workspace* work
) noexcept nogil
# The score of the best tree of theta (n, n + 1, labels), -inf where there is none. Writes the best score and label of
# each arc into arc and label (n, n + 1), and the heads.
cdef double best_labelled(
    const double* theta,
    Py_ssize_t n,
    Py_ssize_t labels,
    bint single_root,
    double* arc,
    Py_ssize_t* label,
    Py_ssize_t* heads,
    const Workspace* work,
) noexcept nogil
# Sets with a price from the last search, which found `count` components: members (k, n) and prices (k); their number k,
# at most n. Prices are positive, but for the set of all tokens where a single root was asked for.
cdef Py_ssize_t contracted_sets(
    Py_ssize_t n, Py_ssize_t count, const Workspace* work, unsigned char* members, double* prices
) noexcept nogil
