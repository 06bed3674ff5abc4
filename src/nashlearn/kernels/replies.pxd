"""What compiled code asks of the loss of a network's nodes; derive from this to add one.

Rows ``p``, ``q``, ``c`` and ``base`` are those of node ``v``, which has ``k`` labels. ``g`` is room for 2 k numbers.
"""

cdef class Replies:
    cdef readonly Py_ssize_t n  # nodes
    cdef object kept  # the arrays whose addresses are held
    cdef const double* weights

    # Refuse more nodes or labels than the loss has, no label, and rows of p too short for its options.
    cdef int fits(self, Py_ssize_t n, Py_ssize_t k, Py_ssize_t options) except -1
    # How far below the best c a label may lie and still matter to the reply.
    cdef double reach(self, Py_ssize_t v, double eps) noexcept nogil
    # Write L' p into g (k) and return its largest entry.
    cdef double gain(self, Py_ssize_t v, const double* p, Py_ssize_t k, double* g) noexcept nogil
    # Write the best reply to c into p, from the one there.
    cdef void reply(
        self, Py_ssize_t v, const double* c, Py_ssize_t k, double eps, double* p, double* g
    ) noexcept nogil
    # Write base exp((L' p - t) / eps) into node; return t, no less than L' p.
    cdef double tilt(
        self, Py_ssize_t v, const double* p, const double* base, Py_ssize_t k, double eps, double* g, double* node
    ) noexcept nogil
    # Write the reply to eps log(c / best) into p, best the largest of c, which is lost; then as tilt.
    cdef double settle(
        self, Py_ssize_t v, double* c, double best, const double* base, Py_ssize_t k, double eps, double* p, double* g,
        double* node
    ) noexcept nogil
    # min_i (L q)_i.
    cdef double risk(self, Py_ssize_t v, const double* q, Py_ssize_t k) noexcept nogil
    # <p, L q>.
    cdef double expected(self, Py_ssize_t v, const double* p, const double* q, Py_ssize_t k) noexcept nogil
    # The same, with the risk written into least.
    cdef double stakes(
        self, Py_ssize_t v, const double* p, const double* q, Py_ssize_t k, double* least
    ) noexcept nogil
