"""Proximal steps and tempered games of rows whose scores are at hand, with what they add to an objective."""

from nashlearn.kernels.loss cimport Certificate, Loss, Step
from nashlearn.kernels.scratch cimport Scratch

cdef class Steps:
    cdef readonly Loss loss
    cdef readonly double mu
    cdef readonly bint learns
    cdef readonly Py_ssize_t taken
    cdef Scratch room

cdef struct Given:  # what belongs to the rows of a block, from its first on
    const Py_ssize_t* codes  # (n,) their labels, which are rows of
    const double* vertices  # (labels, k)
    const double* omega  # (n,)
    const double* centre  # (n, k), where proximal steps begin
    double* Q  # (n, k) strategies; NULL where tempered ones are not asked for
    unsigned char* tight  # (n, options)

cdef struct StepRoom:
    double* g
    double* reply
    double* p
    Step* found
    void* together

cdef struct TemperRoom:
    double* reply
    Certificate* found
    void* play

# Read what all rows are given, and what those are that take proximal steps.
cdef int take_given(Given* given, Loss loss, Py_ssize_t n, object codes, object vertices, object omega) except -1
cdef int take_steps(Given* given, Loss loss, Py_ssize_t n, object centre, object Q, object tight) except -1
cdef StepRoom new_step_room(Loss loss, size_t* at) noexcept nogil
cdef TemperRoom new_temper_room(Loss loss, size_t* at) noexcept nogil
# Take the proximal steps of rows first .. first + n - 1, whose scores f (n, k) become residuals; the smoothed losses,
# their bounds and the risks are added to the three sums. The room for steps is that of begin_steps.
cdef void step_rows(
    Loss loss, const Given* given, Py_ssize_t first, Py_ssize_t n, double mu, double* f, void* steps,
    const StepRoom* room, double* sums
) noexcept nogil
# The same of tempered games, with strategies p (n, options) to begin with or NaN; losses, risks and entropies.
cdef void temper_rows(
    Loss loss, const Given* given, Py_ssize_t first, Py_ssize_t n, double mu, double* f, double* p,
    const TemperRoom* room, double* sums
) noexcept nogil
