"""The compiled games on tensors in main memory, without copies, on as many threads as PyTorch uses."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from numba import njit

from nashlearn import games
from nashlearn.games.rows import kernels
from nashlearn.games.rows.simplex import SimplexGame
from nashlearn.solvers.threads import in_threads
from nashlearn.torch.checks import sum_type

__all__ = ["GAMES", "solve"]

_BLOCK = 256  # rows whose p shares one scratch array
_WORTH_A_THREAD = 1 << 16  # scores


@njit(cache=True, nogil=True)
def _equilibria(loss, scores, value, q, p):
    for start in range(0, scores.shape[0], p.shape[0]):
        stop = min(start + p.shape[0], scores.shape[0])
        kernels.equilibria(loss, scores[start:stop], value[start:stop], q[start:stop], p[: stop - start])


# What a name, a class count, parameters and a price stand for.
GAMES = {
    "zero_one": lambda k, params, price: games.zero_one(k, params if params.size else None),
    "absolute": lambda k, params, price: games.absolute(k, params if params.size else None),
    "squared": lambda k, params, price: games.squared(k, params if params.size else None),
    "abstain": lambda k, params, price: games.abstain(k, price),
    "cost": lambda k, params, price: games.cost(params.reshape(-1, k)),
}


@lru_cache(maxsize=32)
def _game(loss: str, k: int, params: bytes, price: float) -> SimplexGame:
    return GAMES[loss](k, np.frombuffer(params), price)


def solve(
    scores: torch.Tensor, params: torch.Tensor, loss: str, price: float, *, keep_p: bool = False
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
    p = x.new_empty(n, game.n_options) if keep_p else None
    arrays = x.numpy(), value.numpy(), q.numpy()
    answers = p.numpy() if p is not None else None

    def part(start: int, stop: int) -> None:
        room = answers[start:stop] if answers is not None else np.empty((_BLOCK, game.n_options), arrays[0].dtype)
        if len(room):
            x_part, value_part, q_part = (array[start:stop] for array in arrays)
            _equilibria(game.params, x_part, value_part, q_part, room)

    threads = max(1, min(torch.get_num_threads(), n * k // _WORTH_A_THREAD))
    in_threads(part, n, threads)
    if spoilt:
        value[lost] = torch.nan
        q[lost] = torch.nan
        if p is not None:
            p[lost] = torch.nan
    return value, q, p
