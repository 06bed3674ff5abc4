"""
Costs move the boundary
=======================

Two overlapping classes. Overlooking the second one costs eight times as much as a false alarm. A classifier trained on
plain errors does not know; one trained on the costs does.
"""

import matplotlib.pyplot as plt
import numpy as np

from nashlearn import NashClassifier

rng = np.random.default_rng(0)
X = np.concatenate(
    [rng.normal([-1.4, 0], [1.0, 1.2], size=(200, 2)), rng.normal([1.4, 0.3], [1.0, 0.8], size=(200, 2))]
)
y = np.repeat([0, 1], 200)
costs = np.array([[0, 8], [1, 0]])  # rows are answers: answering 0 when the truth is 1 costs 8

models = {
    "zero-one": NashClassifier("zero_one", alpha=1e-3),
    "costs": NashClassifier(costs, alpha=1e-3, decision="equilibrium"),
    "costs, Gaussian kernel": NashClassifier(costs, alpha=1e-3, decision="equilibrium", kernel="rbf", gamma=0.3),
}
ticks = np.linspace(-4, 4, 150)
plane = np.column_stack([part.ravel() for part in np.meshgrid(ticks, ticks)])

fig, axes = plt.subplots(1, 3, figsize=(10, 3.6), sharey=True, layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    model.fit(X, y)
    paid = costs[model.predict(X), y].mean()
    ax.contourf(
        ticks, ticks, model.predict(plane).reshape(150, 150), levels=[-0.5, 0.5, 1.5], alpha=0.25, cmap="coolwarm"
    )
    ax.scatter(*X.T, c=y, s=8, cmap="coolwarm")
    ax.set(title=f"{name}\ncost {paid:.2f} an example", xlim=(-4, 4), ylim=(-4, 4))

# %%
# ``decision="equilibrium"`` answers with the larger entry of the strategy ``p``, which knows the costs.
