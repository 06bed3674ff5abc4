"""
Grades along one direction
==========================

``NashOrdinalClassifier`` projects the data on one direction and cuts it by thresholds.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import scale

from nashlearn import NashOrdinalClassifier

X, progression = load_diabetes(return_X_y=True)
grades = np.digitize(progression, np.quantile(progression, [0.25, 0.5, 0.75]))
model = NashOrdinalClassifier(alpha=1e-3).fit(scale(X), grades)
place = scale(X) @ model.coef_[0]

fig, (axis, errors) = plt.subplots(1, 2, figsize=(9.5, 3.4), layout="constrained")
axis.hist([place[grades == g] for g in range(4)], bins=30, stacked=True, label=[f"grade {g}" for g in range(4)])
for threshold in model.thresholds_:
    axis.axvline(threshold, color="black", linestyle="--", linewidth=1)
axis.set(xlabel="place along the direction", ylabel="patients", title="grades and thresholds")
axis.legend()

difference = model.predict(scale(X)) - grades
errors.bar(*np.unique(difference, return_counts=True))
_ = errors.set(
    xlabel="answer less truth", ylabel="patients", title=f"mean absolute error {np.abs(difference).mean():.2f}"
)
