"""
Costs move the boundary
=======================

Two overlapping classes. Overlooking the second one costs eight times as much as a false alarm. A classifier trained on
plain errors does not know; one trained on the costs does. So does logistic regression, if it takes the answer that is
cheapest under its probabilities: the usual way, and a strong one.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from nashlearn import NashClassifier


def sample(n, seed):
    """So many examples of each class."""
    rng = np.random.default_rng(seed)
    first, second = rng.normal([-1.4, 0], [1.0, 1.2], size=(n, 2)), rng.normal([1.4, 0.3], [1.0, 0.8], size=(n, 2))
    return np.concatenate([first, second]), np.repeat([0, 1], n)


X, y = sample(200, seed=0)
X_test, y_test = sample(20000, seed=1)
costs = np.array([[0, 8], [1, 0]])  # rows are answers: answering 0 when the truth is 1 costs 8


class CheapestAnswer(LogisticRegression):
    """Logistic regression, and then the answer of least expected cost."""

    def predict(self, X):
        """``argmin_i sum_j costs[i, j] P(j | x)``."""
        return np.argmin(self.predict_proba(X) @ costs.T, axis=1)


models = {
    "zero-one": NashClassifier("zero_one", alpha=1e-3),
    "costs": NashClassifier(costs, alpha=1e-3),
    "costs, Gaussian kernel": NashClassifier(costs, alpha=1e-3, kernel="rbf", gamma=0.3),
    "logistic, cheapest answer": CheapestAnswer(),
}
ticks = np.linspace(-4, 4, 150)
plane = np.column_stack([part.ravel() for part in np.meshgrid(ticks, ticks)])

fig, axes = plt.subplots(1, 4, figsize=(13, 3.6), sharey=True, layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    model.fit(X, y)
    paid = costs[model.predict(X_test), y_test].mean()
    ax.contourf(
        ticks, ticks, model.predict(plane).reshape(150, 150), levels=[-0.5, 0.5, 1.5], alpha=0.25, cmap="coolwarm"
    )
    ax.scatter(*X.T, c=y, s=8, cmap="coolwarm")
    ax.set(title=f"{name}\ncost {paid:.3f} an example", xlim=(-4, 4), ylim=(-4, 4))

# %%
# Costs are those of 40,000 new examples. ``predict`` answers with the larger entry of the strategy ``p``, which knows
# the costs; ``decision_`` says so. Where probabilities are as easy to estimate as here, the last model does about as
# well: what training on the costs adds is its certificate.
