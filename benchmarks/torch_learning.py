"""The examples of structured losses on a CUDA device: do they learn, and what a step takes there and by the host.

    python -m benchmarks torch_learning

``examples/torch/set_matching.py``: three losses, three seeds, 300 steps of 64 pictures. ``examples/torch/parser.py``:
the biaffine parser on 640 sentences of Turkish IMST, ten epochs in batches of 32, with the tree game and with
cross-entropy over heads. Each loss has six settings, three steps of Adam by two of its own (smoothing; label
smoothing), of which the best on the development part with one seed is taken; reported are three other seeds on the
test part. For the time of a step by the host the same games are played without their kernels.
"""

from __future__ import annotations

import statistics
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import report

__all__ = ["run"]

SEEDS = 3
STEPS = 300
SENTENCES, EPOCHS = 640, 10
RATES = (1e-3, 2e-3, 4e-3)
TUNING_SEED = 100
HOST_SENTENCES = 320  # on which a step by the host is timed
FOLDER = Path(__file__).parent.parent / "examples" / "torch"


def _matchings() -> dict[str, Any]:
    import set_matching

    found: dict[str, Any] = {}
    for name in set_matching.LOSSES:
        runs = [set_matching.train(name, STEPS, "cuda", seed) for seed in range(SEEDS)]
        found[name] = {"right": [right for right, _ in runs], "step": min(step for _, step in runs)}
        print(name, found[name], flush=True)
    kernel, set_matching._GAME._table.kernel = set_matching._GAME._table.kernel, None
    found["matching game"]["step by the host"] = set_matching.train("matching game", STEPS // 10, "cuda")[1]
    set_matching._GAME._table.kernel = kernel
    return found


def _trained(sentences: list[Any], loss: Any, rate: float, seed: int, epochs: int) -> tuple[Any, float]:
    """A parser, and seconds of a step."""
    import biaffine
    import torch

    torch.manual_seed(seed)
    parser = biaffine.BiaffineParser(biaffine.Vocabulary(sentences)).cuda()
    begin = time.perf_counter()
    for _ in biaffine.train_parser(parser, sentences, loss=loss, epochs=epochs, lr=rate, seed=seed):
        torch.cuda.synchronize()
    return parser, (time.perf_counter() - begin) / (epochs * -(-len(sentences) // 32))


def _losses() -> dict[str, dict[str, Any]]:
    """The settings of each loss of arcs."""
    import parser as example

    import nashlearn.torch as nt

    games = {f"smoothing {mu:g}": nt.ArborescenceLoss(smoothing=mu, tol=1e-6) for mu in (1.0, 3.0)}
    return {
        "tree game": games,
        "cross-entropy": {f"label smoothing {s:g}": partial(example.cross_entropy, smoothing=s) for s in (0.0, 0.1)},
    }


def _parsers() -> dict[str, Any]:
    from nashlearn import datasets, parsing

    parts = {split: datasets.load_treebank("tr_imst-r2.3", split) for split in ("train", "dev", "test")}
    train = parts["train"][:SENTENCES]

    def right(parser: Any, split: str) -> float:
        heads, counted = [one.heads for one in parts[split]], parsing.not_punctuation(parts[split])
        return float(parsing.attachment(parser.predict(parts[split])[0], heads, mask=counted))

    found: dict[str, Any] = {}
    for name, settings in _losses().items():
        tried = {
            (own, rate): right(_trained(train, loss, rate, TUNING_SEED, EPOCHS)[0], "dev")
            for own, loss in settings.items()
            for rate in RATES
        }
        own, rate = max(tried, key=lambda which: tried[which])
        loss = settings[own]
        runs = [_trained(train, loss, rate, seed, EPOCHS) for seed in range(SEEDS)]
        found[name] = {
            "right": [right(parser, "test") for parser, _ in runs],
            "step": min(step for _, step in runs),
            "chosen": f"{own}, step {rate:g}",
            "tried": {f"{own}, step {rate:g}": value for (own, rate), value in tried.items()},
        }
        print(name, found[name], flush=True)
        if name == "tree game":
            kernel, loss._table.kernel = loss._table.kernel, None
            found[name]["step by the host"] = _trained(train[:HOST_SENTENCES], loss, rate, 0, 1)[1]
            loss._table.kernel = kernel
    return found


def _rows(task: str, found: dict[str, Any]) -> list[list[str]]:
    rows = []
    for name, one in found.items():
        each = ", ".join(f"{100 * right:.1f}" for right in one["right"])
        by_host = report.seconds(one.get("step by the host"))
        mean = f"{100 * statistics.fmean(one['right']):.1f}"
        rows.append([task, name, one.get("chosen", "–"), each, mean, report.seconds(one["step"]), by_host])
    return rows


def run() -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The table and its records; needs a CUDA device."""
    import torch

    if not torch.cuda.is_available():
        raise SystemExit("torch_learning needs a CUDA device; its results stay as they are")
    sys.path.insert(0, str(FOLDER))
    found = {"objects": _matchings(), "heads": _parsers()}
    device = {"name": torch.cuda.get_device_name(), "torch": torch.__version__, "cuda": torch.version.cuda}
    note = (
        f"On one {device['name']} with PyTorch {device['torch']}. Objects: those found again in new pictures, of three "
        "seeds. Heads: unlabelled attachment without punctuation on the test part of IMST, each loss with the best of "
        "six settings on the development part. A whole training step, with the games on the device and, in the last "
        "column, by the host on one thread."
    )
    columns = ["task", "loss", "chosen", "right, %", "mean", "a step", "by the host"]
    rows = [row for task, one in found.items() for row in _rows(task, one)]
    return [report.table("Structured losses at work, on CUDA", note, columns, rows)], {"device": device, **found}
