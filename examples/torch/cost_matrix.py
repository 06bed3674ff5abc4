"""Mistakes with a price: overlooking a malignant tumour costs ten false alarms.

A cost matrix ``L[answer, truth]`` is the loss. Cross-entropy gets the two usual remedies: the answer that is cheapest
under its probabilities, and class weights. On this small set the first of these costs least.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn

import nashlearn.torch as nt

COSTS = np.array([[0.0, 1.0], [10.0, 0.0]])  # truth 0 is malignant: answering 1 overlooks it
Rule = Callable[[torch.Tensor], torch.Tensor]


def largest(scores: torch.Tensor) -> torch.Tensor:
    """The answer of the largest score."""
    return scores.argmax(1)


def cheapest(scores: torch.Tensor) -> torch.Tensor:
    """The answer of least expected cost under the probabilities."""
    return (scores.softmax(1) @ torch.as_tensor(COSTS.T, dtype=scores.dtype)).argmin(1)


GAME = nt.NashLoss(COSTS)
METHODS: dict[str, tuple[nn.Module, Rule]] = {
    "cost matrix": (GAME, GAME.predict),
    "cross-entropy, cheapest answer": (nn.CrossEntropyLoss(), cheapest),
    "weighted cross-entropy": (nn.CrossEntropyLoss(weight=torch.tensor([10.0, 1.0])), largest),
    "cross-entropy": (nn.CrossEntropyLoss(), largest),
}


def mean_cost(loss: nn.Module, rule: Rule, seed: int) -> float:
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
    answers = rule(model(x_test).detach())
    return float(COSTS[answers.numpy(), y_test].mean())


if __name__ == "__main__":
    torch.set_num_threads(1)
    for name, (loss, rule) in METHODS.items():
        costs = [mean_cost(loss, rule, seed) for seed in range(10)]
        print(f"{name:32} mean cost {np.mean(costs):.3f} ± {np.std(costs, ddof=1) / len(costs) ** 0.5:.3f}")
