"""The game over arborescences by pivots from the basis of the projection."""

from nashlearn.kernels.tree_basis cimport Basis
from nashlearn.kernels.tree_projection cimport Cuts

# Begin at the face of the projection cuts.x of theta, a wrong head costing `weight`, whose k cuts price_cuts found.
# False where no basis is found there.
cdef bint begin_at_projection(
    Basis* basis, const double* theta, double weight, bint single_root, Py_ssize_t k, const Cuts* cuts
) noexcept nogil
# Add a cut that is violated, which neither player meets with equality yet; False where there is no room.
cdef bint add_cut(Basis* basis, const unsigned char* inside) noexcept nogil
# Pivot until neither player gains by arcs or cuts that are known: first on the predictor's side, which stays feasible
# where it is, then on the adversary's. At most *left pivots, which are counted down; False where they, or the
# arithmetic, do not suffice.
cdef bint pivot(Basis* basis, Py_ssize_t* left) noexcept nogil
