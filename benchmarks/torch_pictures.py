"""The linear heads on very many pictures, on a CUDA device: top-1 accuracy after equal steps and after equal time.

    python -m benchmarks torch_pictures

The protocol is that of :mod:`benchmarks.torch_words`, written before the run, with another task and 500 steps. Each
of the first 10,000 images of MNIST is a class of its own, to be told from a copy that is moved by up to three pixels on
either axis and has noise of deviation 0.3 added. There are eight copies of each to train on, 10,000 copies to tune on
and 20,000 to report; layers of 512 and 512.

A first run had all 60,000 images and 400 steps: no loss learned to tell them (cross-entropy 3.5 %, the tempered head
3.0 %), so that there are now fewer of them, each seen seven times as often.
"""

from __future__ import annotations

import math
from typing import Any

from benchmarks.torch_words import HIDDEN, Task, accuracy_table, heads, trained
from nashlearn.datasets import load_mnist

__all__ = ["run"]

IMAGES, COPIES, MOVE, NOISE = 10_000, 8, 3, 0.3


def _task() -> Task:
    import torch

    images = torch.as_tensor(load_mnist(IMAGES).data).cuda()
    generator = torch.Generator("cuda").manual_seed(0)
    draws = {"train": COPIES * len(images), "dev": 10_000, "test": 20_000}
    pictures = {part: _copies(images, many, generator) for part, many in draws.items()}
    return Task(pictures, len(images), lambda: [torch.nn.Linear(images.shape[1], HIDDEN)], 500)


def _copies(images: Any, many: int, generator: Any) -> tuple[Any, Any]:
    """Images that are moved and noisy, and which they are; each as often as the others where all fit."""
    import torch

    n, side = len(images), math.isqrt(images.shape[1])
    which = torch.arange(many, device="cuda") % n if many >= n else _drawn(n, many, generator)
    padded = torch.nn.functional.pad(images.view(n, side, side), (MOVE,) * 4)
    at = torch.randint(0, 2 * MOVE + 1, (2, many), device="cuda", generator=generator)
    span, made = torch.arange(side, device="cuda"), []
    for part in range(0, many, 2**15):
        own, (down, across) = which[part : part + 2**15], at[:, part : part + 2**15]
        rows, columns = (down[:, None] + span)[:, :, None], (across[:, None] + span)[:, None, :]
        copy = padded[own[:, None, None], rows, columns].flatten(1)
        noise = torch.randn(copy.shape, device="cuda", generator=generator)
        made.append((copy + NOISE * noise).bfloat16())
    return torch.cat(made), which


def _drawn(n: int, many: int, generator: Any) -> Any:
    import torch

    return torch.randint(0, n, (many,), device="cuda", generator=generator)


def run() -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The table and its records; needs a CUDA device."""
    import torch

    if not torch.cuda.is_available():
        raise SystemExit("torch_pictures needs a CUDA device; its results stay as they are")
    found, _ = trained(_task(), heads())
    device = {"name": torch.cuda.get_device_name(), "torch": torch.__version__, "cuda": torch.version.cuda}
    title = f"{device['name']} with PyTorch {device['torch']}"
    table = accuracy_table("The linear heads on many pictures, on CUDA", "torch_pictures", found, title)
    return [table], {"device": device, **found}
