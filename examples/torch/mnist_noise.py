"""MNIST with wrong labels: a small CNN trained with the adversarial zero-one loss and with cross-entropy.

Both losses see the same networks, batches, labels and optimiser. Writes the table, the plot and every figure to
``results/`` beside this file. Minutes on two cores (fewer images by default), less than that on a GPU with all images.

    python examples/torch/mnist_noise.py [--images 60000] [--seeds 5] [--epochs 5]
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path

import torch
from torch import nn

import nashlearn.torch as nt
from nashlearn.datasets import load_mnist

RESULTS = Path(__file__).parent / "results"
LOSSES = {"zero-one": nt.NashLoss("zero_one", smoothing=0.0), "cross-entropy": nn.CrossEntropyLoss()}


def network() -> nn.Module:
    """Two convolutions, two layers."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 49, 128), nn.ReLU(), nn.Linear(128, 10),
    )  # fmt: skip


def with_noise(y: torch.Tensor, noise: float, seed: int) -> torch.Tensor:
    """Each label replaced, with probability ``noise``, by one of the nine others."""
    generator = torch.Generator().manual_seed(seed)
    wrong = torch.rand(len(y), generator=generator) < noise
    shift = torch.randint(1, 10, (len(y),), generator=generator)
    return torch.where(wrong, (y + shift) % 10, y)


def accuracy(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> float:
    """Share of right answers."""
    with torch.no_grad():
        return torch.cat([model(part).argmax(1) for part in x.split(5000)]).eq(y).double().mean().item()


def train(loss: nn.Module, x: torch.Tensor, y: torch.Tensor, seed: int, epochs: int, batch: int = 256) -> nn.Module:
    """Adam with a falling step, the same for every loss."""
    torch.manual_seed(seed)
    model = network().to(x.device)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    steps = epochs * -(-len(x) // batch)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, max_lr=2e-3, total_steps=steps)
    for _ in range(epochs):
        for part in torch.randperm(len(x)).to(x.device).split(batch):
            optimiser.zero_grad()
            loss(model(x[part]), y[part]).backward()
            optimiser.step()
            schedule.step()
    return model


def summary(runs: list[dict]) -> str:
    """Mean and standard error over seeds, as a table."""
    lines = ["| label noise | zero-one | cross-entropy | difference |", "|---|---|---|---|"]
    for noise in sorted({run["noise"] for run in runs}):
        of = {name: [r["accuracy"] for r in runs if r["noise"] == noise and r["loss"] == name] for name in LOSSES}
        pairs = [a - b for a, b in zip(*of.values(), strict=True)]
        cells = [f"{100 * statistics.mean(v):.2f} ± {100 * error(v):.2f}" for v in (*of.values(), pairs)]
        lines.append(f"| {noise:.0%} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def error(values: list[float]) -> float:
    """Standard error of the mean."""
    return statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else float("nan")


def plot(runs: list[dict], path: Path) -> None:
    """Accuracy against noise, with standard errors."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(5, 3.5), layout="constrained")
    levels = sorted({run["noise"] for run in runs})
    for name in LOSSES:
        values = [[100 * r["accuracy"] for r in runs if r["noise"] == n and r["loss"] == name] for n in levels]
        means = [statistics.mean(v) for v in values]
        axes.errorbar([100 * n for n in levels], means, [error(v) for v in values], marker="o", capsize=3, label=name)
    axes.set(xlabel="wrong training labels, %", ylabel="test accuracy, %")
    axes.legend()
    figure.savefig(path, dpi=120)


def main() -> None:
    """Train everything, print and write what came out."""
    on_gpu = torch.cuda.is_available()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=60000 if on_gpu else 6000)
    parser.add_argument("--seeds", type=int, default=5 if on_gpu else 2)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--noise", type=float, nargs="+", default=[0.2, 0.4, 0.6])
    options = parser.parse_args()
    device = "cuda" if on_gpu else "cpu"
    data, test = load_mnist(options.images), load_mnist(part="test")
    x = torch.as_tensor(data.data).reshape(-1, 1, 28, 28).to(device)
    test_x = torch.as_tensor(test.data).reshape(-1, 1, 28, 28).to(device)
    test_y = torch.as_tensor(test.target).to(device)
    runs = []
    for noise in options.noise:
        for seed in range(options.seeds):
            y = with_noise(torch.as_tensor(data.target), noise, seed).to(device)
            for name, loss in LOSSES.items():
                got = accuracy(train(loss, x, y, seed, options.epochs), test_x, test_y)
                runs.append({"noise": noise, "seed": seed, "loss": name, "accuracy": got})
                print(f"noise {noise:.0%}, seed {seed}, {name}: {got:.4f}", flush=True)
    where = torch.cuda.get_device_name() if on_gpu else "CPU"
    note = f"Test accuracy in %, mean ± standard error over {options.seeds} seeds; {options.images} training images, "
    note += f"{options.epochs} epochs, {where}. Generated by `examples/torch/mnist_noise.py`; do not edit."
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "mnist_noise.json").write_text(json.dumps({"options": vars(options), "runs": runs}, indent=1) + "\n")
    (RESULTS / "mnist_noise.md").write_text(
        f"# MNIST with wrong labels\n\n{note}\n\n{summary(runs)}\n\n![accuracy against noise](mnist_noise.png)\n"
    )
    plot(runs, RESULTS / "mnist_noise.png")
    print(summary(runs))


if __name__ == "__main__":
    main()
