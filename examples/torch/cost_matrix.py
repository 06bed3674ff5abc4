"""Mistakes with a price: overlooking a malignant tumour costs ten false alarms.

A cost matrix ``L[answer, truth]`` is the loss; cross-entropy gets the usual remedy, class weights.
"""

from __future__ import annotations

import numpy as np
import torch
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn

import nashlearn.torch as nt

COSTS = np.array([[0.0, 1.0], [10.0, 0.0]])  # truth 0 is malignant: answering 1 overlooks it
LOSSES = {
    "cost matrix": nt.NashLoss(COSTS),
    "weighted cross-entropy": nn.CrossEntropyLoss(weight=torch.tensor([10.0, 1.0])),
    "cross-entropy": nn.CrossEntropyLoss(),
}


def mean_cost(loss: nn.Module, seed: int) -> float:
    """Mean cost on the test part of one split."""
    X, y = load_breast_cancer(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, random_state=seed, stratify=y)
    scale = StandardScaler().fit(X)
    x, x_test = (torch.as_tensor(scale.transform(part), dtype=torch.float32) for part in (X, X_test))
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(30, 16), nn.ReLU(), nn.Linear(16, 2))
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.1)
    for _ in range(150):
        optimiser.zero_grad()
        loss(model(x), torch.as_tensor(y)).backward()
        optimiser.step()
    scores = model(x_test).detach()
    answers = loss.predict(scores) if hasattr(loss, "predict") else scores.argmax(1)
    return COSTS[answers.numpy(), y_test].mean()


if __name__ == "__main__":
    torch.set_num_threads(1)
    for name, loss in LOSSES.items():
        costs = [mean_cost(loss, seed) for seed in range(10)]
        print(f"{name:24} mean cost {np.mean(costs):.3f} ± {np.std(costs, ddof=1) / len(costs) ** 0.5:.3f}")
