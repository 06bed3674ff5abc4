"""Deep networks trained with cross-entropy, label smoothing, the exact and the tempered zero-one loss: top-1 accuracy.

    python -m benchmarks deep

The protocol, written before the run.

Tasks. ``words``: the next word from the four before it, over EWT (UD 2.3). The lower-case forms of training are the
classes, 16,653, and one more stands for all others; sentences are padded at the start; targets are all tokens of known
form; tuned on dev, reported on test. An embedding of 256 numbers, layers of 512 and 512 with ReLU, batch 2,048.
``mnist``: 784 pixels, layers of 512 and 512, batch 256, 50,000 images to train on, 10,000 to tune on and the 10,000
test images; of the training and tuning labels 0, 20, 40 or 60 % are replaced by one of the nine others, drawn anew for
each seed. ``sat``: the table of satellite images (36 features, six classes), standardised, all 6,435 rows shuffled for
each seed and cut into 60 % to train on, 20 % to tune on and 20 % to report, layers of 256 and 256, batch 128.

Losses. Cross-entropy; cross-entropy with label smoothing 0.1; :class:`nashlearn.torch.NashLoss` of errors with
smoothing 0, 0.3 and 1. All predict the class of the largest score.

Training. AdamW (0.9, 0.999) whose step rises linearly over the first tenth and then falls to 0 as a cosine. Every loss
is tuned over the same twelve settings, steps 1e-3, 3e-3, 1e-2 by weight decays 0.01, 0.1 by two numbers of epochs
(words 4 and 8, mnist 5 and 15, sat 20 and 60), each with the same five seeds, which fix initial weights, order of the
batches, wrong labels and splits. The setting with the best mean top-1 over seeds on the tuning part, whose labels are
as wrong as those of training, is reported on the test part. Matrix products are TF32, all else float32. All settings
and seeds of one loss and number of epochs train side by side in one batched network.

Result. Mean top-1 over the five seeds, and for each loss the mean difference to cross-entropy, paired by seeds, with
its 95 % interval by Student's t with four degrees of freedom. A difference is called significant if the interval is
clear of 0. No correction for the number of comparisons.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from benchmarks import report

__all__ = ["run"]

SEEDS = 5
STEPS, DECAYS = (1e-3, 3e-3, 1e-2), (0.01, 0.1)
T95 = 2.7764451051977987  # of Student's t with four degrees of freedom
LOSSES = ("cross-entropy", "label smoothing 0.1", "exact", "tempered 0.3", "tempered 1")


class Task(NamedTuple):
    """Inputs and labels of each seed, by parts; ``words`` have an embedding."""

    name: str
    x: dict[str, Any]  # (n, features), or (seeds, n, features)
    y: dict[str, Any]  # (seeds, n)
    classes: int
    hidden: int
    batch: int
    epochs: tuple[int, int]
    embedded: int = 0


def _losses() -> dict[str, Callable[[Any, Any], Any]]:
    import torch

    import nashlearn.torch as nt

    cross_entropy, nash = torch.nn.functional.cross_entropy, nt.functional.nash_loss
    return {
        "cross-entropy": lambda f, y: cross_entropy(f, y, reduction="sum"),
        "label smoothing 0.1": lambda f, y: cross_entropy(f, y, reduction="sum", label_smoothing=0.1),
        "exact": lambda f, y: nash(f, y, smoothing=0.0, reduction="sum"),
        "tempered 0.3": lambda f, y: nash(f, y, smoothing=0.3, reduction="sum"),
        "tempered 1": lambda f, y: nash(f, y, smoothing=1.0, reduction="sum"),
    }


def _words() -> dict[str, tuple[Any, Any]]:
    """Windows of four words and the word that follows, by parts; class 0 stands for forms that training has not."""
    import numpy as np

    from nashlearn.datasets import load_treebank

    parts = {part: load_treebank("en_ewt-r2.3", part) for part in ("train", "dev", "test")}
    forms = sorted({form.lower() for sentence in parts["train"] for form in sentence.forms})
    number = {form: i + 1 for i, form in enumerate(forms)}
    found = {}
    for part, sentences in parts.items():
        x, y = [], []
        for sentence in sentences:
            ids = [0] * 4 + [number.get(form.lower(), 0) for form in sentence.forms]
            for i in range(4, len(ids)):
                if ids[i]:
                    x.append(ids[i - 4 : i])
                    y.append(ids[i])
        found[part] = np.array(x), np.array(y)
    return found


def _tasks(device: str) -> list[Task]:
    import numpy as np
    import torch

    from nashlearn.datasets import load_mnist, load_multiclass

    def put(x: Any) -> Any:
        return torch.as_tensor(x).to(device)

    found = _words()
    x = {part: put(x) for part, (x, _) in found.items()}
    y = {part: put(y).expand(SEEDS, -1) for part, (_, y) in found.items()}
    classes = 1 + max(int(part.max()) for part in (*x.values(), *y.values()))
    tasks = [Task("words", _renamed(x), _renamed(y), classes, 512, 2048, (4, 8), embedded=256)]
    data, test = load_mnist(), load_mnist(part="test")
    images = put(np.asarray(data.data, dtype=np.float32))
    x = {"train": images[:50000], "tune": images[50000:], "test": put(np.asarray(test.data, dtype=np.float32))}
    truth = put(np.asarray(data.target, dtype=np.int64))
    for noise in (0.0, 0.2, 0.4, 0.6):
        labels = torch.stack([_noisy(truth, noise, seed) for seed in range(SEEDS)])
        y = {"train": labels[:, :50000], "tune": labels[:, 50000:]}
        y["test"] = put(np.asarray(test.target, dtype=np.int64)).expand(SEEDS, -1)
        tasks.append(Task(f"mnist, {noise:.0%} noise", x, y, 10, 512, 256, (5, 15)))
    table = load_multiclass("sat")
    rows, target = np.asarray(table.data, dtype=np.float64), np.unique(table.target, return_inverse=True)[1]
    rows = (rows - rows.mean(0)) / rows.std(0)
    order = np.stack([np.random.default_rng(seed).permutation(len(rows)) for seed in range(SEEDS)])
    cuts = {"train": slice(0, 3861), "tune": slice(3861, 5148), "test": slice(5148, None)}
    x = {part: put(rows[order[:, cut]].astype(np.float32)) for part, cut in cuts.items()}
    y = {part: put(target[order[:, cut]].astype(np.int64)) for part, cut in cuts.items()}
    return [*tasks, Task("sat", x, y, int(target.max()) + 1, 256, 128, (20, 60))]


def _renamed(parts: dict[str, Any]) -> dict[str, Any]:
    return {"train": parts["train"], "tune": parts["dev"], "test": parts["test"]}


def _noisy(y: Any, noise: float, seed: int) -> Any:
    import torch

    generator = torch.Generator().manual_seed(1000 + seed)
    wrong = torch.rand(len(y), generator=generator).to(y.device) < noise
    shift = torch.randint(1, 10, (len(y),), generator=generator).to(y.device)
    return torch.where(wrong, (y + shift) % 10, y)


def _initial(task: Task, members: int, device: str) -> list[Any]:
    """Weights of all members, those of one seed alike: as torch.nn.Linear and Embedding draw them."""
    import torch

    width = 4 * task.embedded or task.x["train"].shape[-1]
    sizes = [(width, task.hidden), (task.hidden, task.hidden), (task.hidden, task.classes)]
    drawn = []
    for seed in range(SEEDS):
        generator = torch.Generator().manual_seed(seed)
        mine = [torch.randn(task.classes, task.embedded, generator=generator)] if task.embedded else []
        for shape in sizes:
            bound = shape[0] ** -0.5
            mine.append((2 * torch.rand(*shape, generator=generator) - 1) * bound)
            mine.append((2 * torch.rand(1, shape[1], generator=generator) - 1) * bound)
        drawn.append(mine)
    stacked = [torch.stack(parts).to(device) for parts in zip(*drawn, strict=True)]
    return [w.repeat(members // SEEDS, *[1] * (w.dim() - 1)).requires_grad_() for w in stacked]


def _scores(task: Task, weights: list[Any], x: Any) -> Any:
    """Scores (members, rows, classes) of inputs (members, rows, features)."""
    import torch

    layers = list(weights)
    if task.embedded:
        table = layers.pop(0)
        shift = torch.arange(len(x), device=x.device)[:, None, None] * task.classes
        x = torch.nn.functional.embedding(x + shift, table.flatten(0, 1)).flatten(2)
    for i in range(0, len(layers), 2):
        x = torch.baddbmm(layers[i + 1], x, layers[i])
        x = x.relu() if i + 2 < len(layers) else x
    return x


def _of_seeds(x: Any, rows: Any) -> Any:
    """Rows (seeds, b) of inputs that all seeds share, or that each has."""
    import torch

    return x[rows] if x.dim() == 2 else x[torch.arange(len(rows), device=x.device)[:, None], rows]


def _updated(w: Any, grad: Any, mean: Any, square: Any, size: Any, decay: Any, first: Any, second: Any) -> None:
    """One step of AdamW in place; step size and decay of each member, corrections of both averages."""
    mean.lerp_(grad, 0.1)
    square.mul_(0.999).addcmul_(grad, grad, value=0.001)
    w.mul_(1 - size * decay).sub_(size * (mean / first) / ((square / second).sqrt() + 1e-8))


def _accuracy(task: Task, weights: list[Any], part: str, copies: int) -> Any:
    """Top-1 (members,)."""
    import torch

    x, y = task.x[part], task.y[part]
    right = torch.zeros(SEEDS * copies, device=y.device)
    piece = max(1, 2**30 // (4 * task.classes * SEEDS * copies))
    with torch.no_grad():
        for start in range(0, y.shape[1], piece):
            rows = torch.arange(start, min(start + piece, y.shape[1]), device=y.device).expand(SEEDS, -1)
            inputs = _of_seeds(x, rows).repeat(copies, 1, 1)
            right += (_scores(task, weights, inputs).argmax(2) == y.gather(1, rows).repeat(copies, 1)).float().sum(1)
    return right / y.shape[1]


def _trained(task: Task, loss: Callable[[Any, Any], Any], epochs: int, device: str) -> tuple[Any, Any]:
    """Top-1 (settings, seeds) on the tuning and on the test part."""
    import torch

    settings = [(step, decay) for step in STEPS for decay in DECAYS]
    copies, members = len(settings), SEEDS * len(settings)
    x, y = task.x["train"], task.y["train"]
    n = y.shape[1]
    each = n // task.batch
    total = epochs * each
    orders = []
    for seed in range(SEEDS):
        generator = torch.Generator().manual_seed(100 + seed)
        runs = [torch.randperm(n, generator=generator)[: each * task.batch] for _ in range(epochs)]
        orders.append(torch.cat(runs).view(total, task.batch))
    order = torch.stack(orders, 1).to(device)  # (steps, seeds, batch)
    weights = _initial(task, members, device)
    means, squares = ([torch.zeros_like(w) for w in weights] for _ in range(2))
    rise = max(1, total // 10)
    shape = [
        (t + 1) / rise if t < rise else 0.5 + 0.5 * math.cos(math.pi * (t - rise) / (total - rise))
        for t in range(total)
    ]
    shape = torch.tensor(shape, device=device)
    base, decays = (torch.tensor(part, device=device).repeat_interleave(SEEDS) for part in zip(*settings, strict=True))
    moment = torch.zeros(1, dtype=torch.long, device=device)
    update = torch.compile(_updated, dynamic=True) if device == "cuda" else _updated

    def step() -> None:
        rows, size = order.index_select(0, moment)[0], base * shape.index_select(0, moment)
        inputs, labels = _of_seeds(x, rows).repeat(copies, 1, 1), y.gather(1, rows).repeat(copies, 1)
        value = loss(_scores(task, weights, inputs).flatten(0, 1), labels.flatten()) / task.batch
        gradients = torch.autograd.grad(value, weights)
        time = (moment + 1).double()
        first, second = (1 - 0.9**time).float(), (1 - 0.999**time).float()
        with torch.no_grad():
            for parts in zip(weights, gradients, means, squares, strict=True):
                flat = (part.view(members, -1) for part in parts)
                update(*flat, size[:, None], decays[:, None], first, second)
            moment.add_(1)

    _repeated(step, total, device)
    return (_accuracy(task, weights, part, copies).view(copies, SEEDS).cpu() for part in ("tune", "test"))


def _repeated(step: Callable[[], None], times: int, device: str) -> None:
    """Take the step so often; on CUDA from a recording."""
    import torch

    if device != "cuda":
        for _ in range(times):
            step()
        return
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    for _ in range(times - 3):
        graph.replay()
    torch.cuda.synchronize()


def _summary(tests: dict[str, list[float]]) -> dict[str, Any]:
    """Means, and differences to cross-entropy with intervals, in points."""
    base, found = tests["cross-entropy"], {}
    for name, values in tests.items():
        gaps = [100 * (a - b) for a, b in zip(values, base, strict=True)]
        mean = sum(gaps) / SEEDS
        spread = (sum((gap - mean) ** 2 for gap in gaps) / (SEEDS - 1)) ** 0.5
        half = T95 * spread / SEEDS**0.5
        found[name] = {"top1": 100 * sum(values) / SEEDS, "difference": mean, "half": half}
    return found


def _cells(name: str, one: dict[str, float]) -> str:
    if name == "cross-entropy":
        return f"{one['top1']:.2f}"
    mark = "" if abs(one["difference"]) <= one["half"] else (" ▲" if one["difference"] > 0 else " ▼")
    return f"{one['top1']:.2f} ({one['difference']:+.2f} ± {one['half']:.2f}){mark}"


def _compared(task: Task, device: str) -> list[dict[str, Any]]:
    """What each loss reaches on a task, with all settings."""
    import torch

    records = []
    settings = [(epochs, step, decay) for epochs in task.epochs for step in STEPS for decay in DECAYS]
    for name, loss in _losses().items():
        begin = time.perf_counter()
        found = [_trained(task, loss, epochs, device) for epochs in task.epochs]
        tuned, tested = (torch.cat(parts) for parts in zip(*found, strict=True))
        best = int(tuned.mean(1).argmax())
        record: dict[str, Any] = {"task": task.name, "loss": name, "best": best, "settings": settings}
        record |= {"tuned": tuned.tolist(), "tested": tested.tolist(), "seconds": time.perf_counter() - begin}
        records.append(record)
        reached = 100 * tested[best].mean()
        print(task.name, name, settings[best], f"{reached:.2f} %", f"{record['seconds']:.0f} s", flush=True)
    return records


def _table(records: list[dict[str, Any]], where: str, version: str) -> dict[str, Any]:
    rows = []
    for task in dict.fromkeys(r["task"] for r in records):
        mine = [r for r in records if r["task"] == task]
        summary = _summary({r["loss"]: r["tested"][r["best"]] for r in mine})
        rows.append([task, *(_cells(name, summary[name]) for name in LOSSES)])
    note = (
        f"Test top-1 in %, mean of {SEEDS} seeds, each loss at the one of the same twelve settings that is best for it "
        "on held-out data; in brackets the difference to cross-entropy, paired by seeds, with its 95 % interval "
        "(Student's t). ▲ and ▼: the interval is clear of 0. "
        f"On {where} with PyTorch {version}; the protocol is in `benchmarks/deep.py`."
    )
    return report.table("Deep networks", note, ["task", *LOSSES], rows)


def run() -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Table and records of all tasks and losses."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = True
    device = "cuda" if torch.cuda.is_available() else "cpu"
    where = torch.cuda.get_device_name() if device == "cuda" else "the CPU"
    records = [record for task in _tasks(device) for record in _compared(task, device)]
    return [_table(records, where, torch.__version__)], {
        "device": where,
        "torch": torch.__version__,
        "records": records,
    }
