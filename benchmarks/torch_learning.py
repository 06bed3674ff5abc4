"""The examples of structured losses on a CUDA device: do they learn, and what a step takes there and by the host.

    python -m benchmarks torch_learning

``examples/torch/set_matching.py``: three losses, three seeds, 300 steps of 64 pictures. ``examples/torch/parser.py``:
the biaffine parser on 640 sentences of Turkish IMST, five epochs in batches of 32, with
the tree game and with cross-entropy over heads; three seeds. For the time of a step by the host the same games are
played without their kernels.
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks import report

__all__ = ["run"]

SEEDS = 3
STEPS = 300
SENTENCES, EPOCHS = 640, 5
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


def _trained(sentences: list[Any], loss: Any, seed: int, epochs: int) -> tuple[Any, float]:
    """A parser, and seconds of a step."""
    import biaffine
    import torch

    torch.manual_seed(seed)
    parser = biaffine.BiaffineParser(biaffine.Vocabulary(sentences)).cuda()
    begin = time.perf_counter()
    for _ in biaffine.train_parser(parser, sentences, loss=loss, epochs=epochs, seed=seed):
        torch.cuda.synchronize()
    return parser, (time.perf_counter() - begin) / (epochs * -(-len(sentences) // 32))


def _parsers() -> dict[str, Any]:
    import parser as example

    from nashlearn import datasets, parsing

    train, test = (datasets.load_treebank("tr_imst-r2.3", split) for split in ("train", "test"))
    truth, counted = [one.heads for one in test], parsing.not_punctuation(test)
    found: dict[str, Any] = {}
    for name, loss in example.LOSSES.items():
        right, steps = [], []
        for seed in range(SEEDS):
            parser, step = _trained(train[:SENTENCES], loss, seed, EPOCHS)
            right.append(parsing.attachment(parser.predict(test)[0], truth, mask=counted))
            steps.append(step)
        found[name] = {"right": right, "step": min(steps)}
        print(name, found[name], flush=True)
    game: Any = example.LOSSES["tree game"]
    kernel, game._table.kernel = game._table.kernel, None
    found["tree game"]["step by the host"] = _trained(train[:HOST_SENTENCES], game, 0, 1)[1]
    game._table.kernel = kernel
    return found


def _rows(task: str, found: dict[str, Any]) -> list[list[str]]:
    rows = []
    for name, one in found.items():
        each = ", ".join(f"{100 * right:.1f}" for right in one["right"])
        by_host = report.seconds(one.get("step by the host"))
        mean = f"{100 * statistics.fmean(one['right']):.1f}"
        rows.append([task, name, each, mean, report.seconds(one["step"]), by_host])
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
        "seeds. Heads: unlabelled attachment without punctuation on the test part of IMST. A whole training step, with "
        "the games on the device and, in the last column, by the host on one thread."
    )
    columns = ["task", "loss", "right, %", "mean", "a step", "by the host"]
    rows = [row for task, one in found.items() for row in _rows(task, one)]
    return [report.table("Structured losses at work, on CUDA", note, columns, rows)], {"device": device, **found}
