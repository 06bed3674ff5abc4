"""The compiled games on tensors in main memory, without copies, on as many threads as PyTorch uses.

What lies on a CUDA device is copied through page-locked memory, once in either direction.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch

from nashlearn import games
from nashlearn.games.rows.simplex import SimplexGame
from nashlearn.kernels.loss import equilibria
from nashlearn.kernels.tempered import temper_rows
from nashlearn.solvers.threads import in_threads
from nashlearn.torch.checks import sum_type

__all__ = ["GAMES", "from_host", "on_host", "solve"]

_WORTH_A_THREAD = 1 << 16  # scores


# What a name, a class count, parameters and a price stand for.
GAMES = {
    "zero_one": lambda k, params, price: games.zero_one(k, params if params.size else None),
    "absolute": lambda k, params, price: games.absolute(k, params if params.size else None),
    "squared": lambda k, params, price: games.squared(k, params if params.size else None),
    "abstain": lambda k, params, price: games.abstain(k, price),
    "cost": lambda k, params, price: games.cost(params.reshape(-1, k)),
}


def on_host(x: torch.Tensor) -> torch.Tensor:
    """A tensor in main memory."""
    if x.device.type != "cuda":
        return x.cpu()
    there = torch.empty(x.shape, dtype=x.dtype, pin_memory=True)
    return there.copy_(x)


def from_host(x: torch.Tensor, device: torch.device) -> torch.Tensor:
    """A tensor on a device, which need not wait for it."""
    return x.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else x.to(device)


@lru_cache(maxsize=32)
def _game(loss: str, k: int, params: bytes, price: float) -> SimplexGame:
    return GAMES[loss](k, np.frombuffer(params), price)


def solve(
    scores: torch.Tensor,
    params: torch.Tensor,
    loss: str,
    price: float,
    smoothing: float = 0.0,
    *,
    keep_p: bool = False,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """Value (n,), q (n, k) and on request p (n, options) of ``scores`` (n, k), in float64 for float64, else float32.

    Rows with NaN or +inf, or with -inf throughout, give NaN.
    """
    n, k = scores.shape
    numbers = params.detach().to("cpu", torch.float64).contiguous().numpy()
    game = _game(loss, k, numbers.tobytes(), price)
    x = scores.detach().to("cpu", sum_type(scores.dtype)).contiguous()
    lost = ~x.amax(1).isfinite() if n else x.new_empty(0, dtype=torch.bool)
    spoilt = bool(lost.any())
    if spoilt:
        x = x.masked_fill(lost[:, None], 0.0)
    value, q = x.new_empty(n), torch.empty_like(x)
    p = x.new_full((n, game.n_options), torch.nan) if keep_p or smoothing else None
    # What the tempered game tells beside: its gap, entropy and risk.
    others = x.new_empty(3, n).unbind() if smoothing else ()
    arrays = [None if part is None else part.numpy() for part in (x, value, q, p, *others)]
    kernel = game.params.compiled()

    def part(start: int, stop: int) -> None:
        rows, *found = (None if array is None else array[start:stop] for array in arrays)
        if smoothing:
            temper_rows(kernel, rows, smoothing, *found)
        else:
            equilibria(kernel, rows, *found)

    threads = max(1, min(torch.get_num_threads(), n * k // _WORTH_A_THREAD))
    in_threads(part, n, threads)
    if spoilt:
        for found in (value, q, p):
            if found is not None:
                found[lost] = torch.nan
    return value, q, p if keep_p else None
