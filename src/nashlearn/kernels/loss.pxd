"""What a loss offers to compiled code, one row at a time, in float64. cimport this to add a loss.

A loss never changes after it was made, but for one whose costs depend on the row: an entry takes a loss of its ``own``
for the rows that it was given and moves that to each of them by ``at``. ``room`` is scratch of the caller's, one for
each thread: as many bytes as room_size says, aligned as malloc aligns, of unspecified content; no two arguments overlap.
"""

cdef struct Certificate:  # what the strategies of a row secure; the value is top + (upper - gap)
    double top  # what its scores have in common: all below are relative to it
    double upper  # max_q <f + L' p, q> + mu H(q)
    double least  # min_i (L q)_i
    double gap  # <p, L q> less the least
    double entropy  # what q secures beside its scores: min(L q) + mu H(q)


cdef struct Step:  # what a proximal step of a row secures
    double top  # what is taken off its scores: the next two are relative to it
    double value  # <f, q> + risk - mu/2 |q - middle|^2
    double upper  # max_q <f + L' p, q>
    double risk  # of q


cdef class Loss:
    cdef readonly Py_ssize_t k  # labels: the length of scores and of q
    cdef readonly Py_ssize_t options  # the length of p
    cdef readonly bint partial  # whether prox takes fewer labels than all

    # A loss for n rows that nobody else moves, this one itself where rows make no difference; an error where it is for
    # another number of rows.
    cdef Loss own(self, Py_ssize_t n)
    # Go to a row: what follows is about its costs. Rows that are played together begin there.
    cdef void at(self, Py_ssize_t row) noexcept nogil
    cdef size_t room_size(self) noexcept nogil
    # Called before the first equilibrium; what one row leaves in the room for the next is the loss's own affair.
    cdef void begin(self, void* room) noexcept nogil
    # Write the equilibrium of scores f into q and p and return its value.
    cdef double equilibrium(self, const double* f, double* q, double* p, void* room) noexcept nogil
    # Add L' p, what p loses to each label, to reward; return what it loses whatever the label.
    cdef double gain(self, const double* p, double* reward) noexcept nogil
    # max_q <reward, q> + mu H(q): what the best adversary gets; mu may be 0. Where it is positive, q is written.
    cdef double reply(self, const double* reward, double mu, double* q) noexcept nogil
    # min_i (L q)_i, the Bayes risk of the label distribution q.
    cdef double risk(self, const double* q, void* room) noexcept nogil
    # What may be taken off all scores of a row without changing the game but for its value: the largest of them.
    cdef double common(self, const double* f) noexcept nogil
    # Write argmax_q <g, q> - a/2 |q|^2 + min_p <p, L q> over the first m labels into q, and its p. On entry q is any
    # point of the simplex: a good one saves work, none changes the answer. m < k for losses that are partial only.
    cdef void prox(self, Py_ssize_t m, const double* g, double a, double* q, double* p, void* room) noexcept nogil
    # Bytes of room for next_step, that of room_size included.
    cdef size_t steps_size(self) noexcept nogil
    # Called before the first of many steps with one a.
    cdef void begin_steps(self, double a, void* room) noexcept nogil
    # As prox over all labels, with the a that steps were begun with. On entry p is positive for the options that may be
    # in play, or for none: as with q, that may save work.
    cdef void next_step(self, const double* g, double a, double* q, double* p, void* room) noexcept nogil
    # Mark in near (k) the labels that may soon enter the proximal step q of g, its support included; all of them,
    # unless the loss takes steps on a subset.
    cdef void contenders(self, const double* g, double a, const double* q, unsigned char* near) noexcept nogil
    # Write an element of the generalised Jacobian (k, k) of prox in g, where p > 0 in the entries that tight marks;
    # return the number of nonzero rows, 0 where q is locally constant and nothing was written.
    cdef Py_ssize_t tangent(
        self, double a, const double* q, const unsigned char* tight, double* jacobian, void* room
    ) noexcept nogil
    # Write p of the tempered game max_q <f, q> + min_p <p, L q> + mu H(q) for mu > 0 and finite scores or -inf. On
    # entry p is a strategy, one of a game nearby or any other: a good one saves work, none changes the answer.
    cdef void temper(self, const double* f, double mu, double* p, void* room) noexcept nogil
    # v <- J v for the Jacobian J of q in f at the tempered equilibrium (q, p).
    cdef void turn(self, double mu, const double* q, const double* p, double* v, void* room) noexcept nogil
    # Bytes of room for play, that of room_size included.
    cdef size_t play_size(self) noexcept nogil
    # Play the tempered games of n rows of scores f (n, k): p (n, options), which holds strategies to begin with or NaN,
    # q (n, k) and the certificates. A row with NaN gives NaN.
    cdef void play(
        self, Py_ssize_t n, const double* f, double mu, double* p, double* q, Certificate* found, void* room
    ) noexcept nogil
    # Play the games of n rows of scores f (n, k) at once: values, q (n, k), p (n, options), what these leave between
    # them, and the risks of q. Returns n, or 0 where rows are better played one by one. Room as for play.
    cdef Py_ssize_t block_equilibria(
        self, Py_ssize_t n, const double* f, double* value, double* q, double* p, double* gap, double* risk, void* room
    ) noexcept nogil
    # Bytes of room for block_steps.
    cdef size_t block_steps_size(self) noexcept nogil
    # Take the proximal steps of n rows of scores f from middle, both (n, k), at once: q (n, k), the support of p in
    # tight (n, options), and what they secure. Returns n, or 0 where rows are better taken one by one.
    cdef Py_ssize_t block_steps(
        self, Py_ssize_t n, const double* f, const double* middle, double mu, double* q, unsigned char* tight,
        Step* found, void* room
    ) noexcept nogil

# Write that a row has NaN.
cdef void lose_row(Py_ssize_t k, Py_ssize_t options, double* p, double* q, Certificate* found) noexcept nogil
