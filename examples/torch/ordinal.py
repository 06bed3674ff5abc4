"""An ordered target: progression of diabetes in five grades, judged by how many grades the answer is off.

The same network trained with the adversarial absolute loss and with cross-entropy, over ten random splits.
"""

from __future__ import annotations

import numpy as np
import torch
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn

import nashlearn.torch as nt

LOSSES = {"absolute": nt.NashLoss("absolute"), "cross-entropy": nn.CrossEntropyLoss()}


def mean_error(loss: nn.Module, seed: int) -> float:
    """Mean absolute error, in grades, on the test part of one split."""
    X, progression = load_diabetes(return_X_y=True)
    grade = np.digitize(progression, np.quantile(progression, [0.2, 0.4, 0.6, 0.8]))
    X, X_test, y, y_test = train_test_split(X, grade, test_size=0.3, random_state=seed)
    scale = StandardScaler().fit(X)
    x, x_test = (torch.as_tensor(scale.transform(part), dtype=torch.float32) for part in (X, X_test))
    y = torch.as_tensor(y)
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 5))
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.1)
    for _ in range(200):
        optimiser.zero_grad()
        loss(model(x), y).backward()
        optimiser.step()
    return np.abs(model(x_test).argmax(1).numpy() - y_test).mean()


if __name__ == "__main__":
    torch.set_num_threads(1)
    for name, loss in LOSSES.items():
        errors = [mean_error(loss, seed) for seed in range(10)]
        print(f"{name:14} mean error {np.mean(errors):.3f} grades ± {np.std(errors, ddof=1) / len(errors) ** 0.5:.3f}")
