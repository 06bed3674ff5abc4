"""
The certificate over time
=========================

Training keeps two numbers: the objective at the best weights so far, and a proven lower bound of the optimum. Nobody
can do better than the bound. Their distance is ``dual_gap_``.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.preprocessing import scale

from nashlearn import NashClassifier

X, y = make_classification(n_samples=5000, n_features=40, n_informative=15, n_classes=5, flip_y=0.1, random_state=0)
model = NashClassifier("zero_one", alpha=1e-4, tol=1e-6).fit(scale(X), y)
rounds = [now for now in model.history_ if np.isfinite(now.gap)]
seconds = [now.seconds for now in rounds]

fig, (values, gaps) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
values.plot(seconds, [now.objective for now in rounds], label="objective")
values.plot(seconds, [now.bound for now in rounds], label="proven lower bound")
values.set(xlabel="seconds", ylim=(0.9 * model.objective_, 1.2 * model.objective_))
values.legend()
gaps.semilogy(seconds, [now.gap for now in rounds])
gaps.axhline(model.tol, color="0.6", linestyle=":")
_ = gaps.set(xlabel="seconds", ylabel="relative gap")

# %%
# The risk that the same fit guarantees, against the radius of the ball of distributions. The dot is the radius within
# which the true moments lie with 95 % confidence.

radius = np.linspace(0, 2 * model.moment_radius(0.95), 50)
fig, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
for alpha in (1e-3, 1e-2, 1e-1):
    fit = NashClassifier("zero_one", alpha=alpha).fit(scale(X), y)
    at = fit.moment_radius(0.95)
    (line,) = ax.plot(radius, [fit.worst_case_risk(r) for r in radius], label=f"alpha = {alpha:g}")
    ax.plot(at, fit.worst_case_risk(at), "o", color=line.get_color())
ax.axhline(0.8, color="0.6", linestyle=":")
ax.annotate("guessing among five classes", (0, 0.81), color="0.4")
ax.set(xlabel="radius", ylabel="bound of the risk", ylim=(0.2, 1.2))
_ = ax.legend(loc="lower right")
