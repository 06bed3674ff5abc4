"""The linear heads on text, on a CUDA device: top-1 accuracy after equal steps and after equal time, and their time.

    python -m benchmarks torch_words

The protocol, written before the run. :mod:`benchmarks.torch_pictures` has another task by the same one.

Task. That of :mod:`benchmarks.deep`, the next word from the four before it over EWT: an embedding of 256 numbers,
layers of 512 and 512 with ReLU. Batch 2,048. The last layer and its loss are one of: compiled cross-entropy over a
linear layer, :class:`nashlearn.torch.NashHead` with smoothing 0 and with smoothing 1. All train in bfloat16 (autocast),
with float32 parameters.

Training. AdamW (0.9, 0.999, decay 0.1) whose step rises linearly over the first tenth and then falls to 0 as a cosine.
Each loss is tuned over the steps 1e-3, 3e-3 and 1e-2 with one seed that is not used again: the best top-1 on the tuning
part. Then five seeds, 400 steps for everybody, and five seeds with as many steps as fit the time that these take with
cross-entropy, by the median time of single training steps that was measured in turns. Reported is top-1 on the test
part, and the difference to cross-entropy, paired by seeds, with its 95 % interval by Student's t. No correction for the
number of comparisons.

Time. Features and weights of the trained models, the classes repeated until there are 131,072, 8,192 rows: forward and
backward of the head alone beside compiled cross-entropy on its own model's scores. Copies of a class tie, so that
supports are as many times larger. Beside cross-entropy stand, where they are installed, Liger's fused linear
cross-entropy and cut-cross-entropy, on its model's scores.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from typing import Any, NamedTuple

from benchmarks import report
from benchmarks.deep import T95, _words
from benchmarks.torch_head import peers
from benchmarks.torch_losses import interleaved

__all__ = ["HIDDEN", "Task", "accuracy_table", "heads", "run", "trained"]

SEEDS, BATCH, HIDDEN, EMBEDDED = 5, 2048, 512, 256
RATES = (1e-3, 3e-3, 1e-2)
HEADS = ("cross-entropy", "exact", "tempered")
MANY, ROWS = 131_072, 8192

Head = Callable[[Any, Any, Any, Any], Any]


def heads() -> dict[str, Head]:
    """Losses of features, weight, bias and target."""
    import torch

    import nashlearn.torch as nt

    linear = torch.nn.functional.linear

    def cross_entropy(h: Any, w: Any, b: Any, y: Any) -> Any:
        return torch.nn.functional.cross_entropy(linear(h, w, b), y)

    def nash(smoothing: float) -> Head:
        return lambda h, w, b, y: nt.functional.linear_nash_loss(h, w, y, b, smoothing=smoothing)

    compiled = torch.compile(cross_entropy, dynamic=False)
    return dict(zip(HEADS, (compiled, nash(0.0), nash(1.0)), strict=True))


class Task(NamedTuple):
    """Inputs and labels by parts, the number of classes, the network below the last layer, and how many steps."""

    data: dict[str, tuple[Any, Any]]
    classes: int
    body: Callable[[], list[Any]]
    steps: int


def _task() -> Task:
    import torch
    from torch import nn

    words = {part: tuple(torch.as_tensor(a).cuda() for a in pair) for part, pair in _words().items()}
    classes = 1 + max(int(a.max()) for pair in words.values() for a in pair)

    def embedded() -> list[Any]:
        return [nn.Embedding(classes, EMBEDDED), nn.Flatten(), nn.Linear(4 * EMBEDDED, HIDDEN)]

    return Task(words, classes, embedded, 400)


def _model(task: Task, seed: int) -> tuple[Any, Any]:
    import torch

    torch.manual_seed(seed)
    relu = torch.nn.ReLU()
    body = torch.nn.Sequential(*task.body(), relu, torch.nn.Linear(HIDDEN, HIDDEN), relu)
    return body.cuda(), torch.nn.Linear(HIDDEN, task.classes).cuda()


class Training:
    """One network with its head and optimiser; ``step`` takes the next of ``steps`` batches."""

    def __init__(self, head: Head, task: Task, rate: float, seed: int, steps: int):
        import torch

        self.head, self.data, self.rate, self.steps, self.t = head, task.data["train"], rate, steps, 0
        self.body, self.last = _model(task, seed)
        self.parameters = [*self.body.parameters(), *self.last.parameters()]
        self.optimiser = torch.optim.AdamW(self.parameters, lr=rate, weight_decay=0.1, fused=True)
        n = len(self.data[1])
        generator = torch.Generator("cuda").manual_seed(100 + seed)
        runs = [torch.randperm(n, generator=generator, device="cuda") for _ in range(-(-steps * BATCH // n))]
        self.order = torch.cat(runs)[: steps * BATCH].view(steps, BATCH)

    def step(self) -> None:
        """One batch forward and backward, and a step of the optimiser."""
        import torch

        t, rise = self.t % self.steps, max(1, self.steps // 10)
        shape = (t + 1) / rise if t < rise else 0.5 + 0.5 * math.cos(math.pi * (t - rise) / (self.steps - rise))
        self.optimiser.param_groups[0]["lr"] = self.rate * shape
        rows = self.order[t]
        with torch.autocast("cuda", torch.bfloat16):
            h = self.body(self.data[0][rows])
            loss = self.head(h, self.last.weight, self.last.bias, self.data[1][rows])
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()
        self.t += 1

    def trained(self) -> Training:
        """All steps taken."""
        for _ in range(self.steps):
            self.step()
        return self

    def top1(self, part: tuple[Any, Any]) -> float:
        """Accuracy in %."""
        import torch

        x, y = part
        with torch.no_grad(), torch.autocast("cuda", torch.bfloat16):
            parts = zip(x.split(4096), y.split(4096), strict=True)
            right = sum(float((self.last(self.body(some)).argmax(1) == truth).sum()) for some, truth in parts)
        return 100 * right / len(y)


def _repeated(one: Training) -> tuple[Any, Any, Any]:
    """Features of training rows and the weights of all classes, these repeated, in bfloat16, and targets."""
    import torch

    x, y = one.data
    with torch.no_grad(), torch.autocast("cuda", torch.bfloat16):
        h = one.body(x[:ROWS]).bfloat16()
    weight = torch.cat([one.last.weight, one.last.bias[:, None]], 1).detach().bfloat16()
    weight = weight.repeat(-(-MANY // len(weight)), 1)[:MANY].contiguous()
    h = torch.cat([h, torch.ones_like(h[:, :1])], 1)
    pad = -h.shape[1] % 8
    h, weight = (torch.nn.functional.pad(part, (0, pad)).contiguous() for part in (h, weight))
    return h.requires_grad_(), weight.requires_grad_(), y[:ROWS].contiguous()


def _head_times(models: dict[str, Training], heads: dict[str, Head]) -> dict[str, float]:
    """Seconds of each head, and of compiled cross-entropy, on each model's own scores; of others on its."""
    import torch

    others = {name: lambda h, w, b, y, loss=loss: loss(h, w, y) for name, loss in peers().items()}
    steps = {}
    for name, one in models.items():
        inputs = _repeated(one)
        for loss in dict.fromkeys((name, "cross-entropy", *(others if name == "cross-entropy" else ()))):
            steps[f"{loss} on {name}"] = lambda i, loss=(heads | others)[loss], inputs=inputs: torch.autograd.grad(
                loss(inputs[0], inputs[1], None, inputs[2]), inputs[:2]
            )
    return interleaved(steps, 5)


def _compared(values: list[float], base: list[float]) -> str:
    gaps = [a - b for a, b in zip(values, base, strict=True)]
    mean, half = statistics.fmean(gaps), T95 * statistics.stdev(gaps) / len(gaps) ** 0.5
    if half == 0:
        return f"{statistics.fmean(values):.2f}"
    mark = "" if abs(mean) <= half else (" ▲" if mean > 0 else " ▼")
    return f"{statistics.fmean(values):.2f} ({mean:+.2f} ± {half:.2f}){mark}"


def accuracy_table(title: str, protocol: str, found: dict[str, Any], device: str) -> dict[str, Any]:
    """What each loss reaches on a task."""
    rows = []
    for name in HEADS:
        one, base = found["heads"][name], found["heads"]["cross-entropy"]
        scores = [_compared(one[kind], base[kind]) for kind in ("equal steps", "equal time")]
        rows.append([name, f"{one['rate']:g}", report.seconds(one["step"]), scores[0], str(one["steps"]), scores[1]])
    note = (
        f"On one {device}. {found['classes']} classes, test top-1 in %, mean of {SEEDS} seeds; in brackets the "
        "difference to cross-entropy, paired by seeds, with its 95 % interval. Equal time: as many steps as fit the "
        f"time that cross-entropy's take. The protocol is in `benchmarks/{protocol}.py`."
    )
    return report.table(title, note, ["loss", "rate", "a step", "equal steps", "steps", "equal time"], rows)


def _time_table(took: dict[str, float]) -> dict[str, Any]:
    rows = []
    for name, seconds in took.items():
        loss, _, model = name.partition(" on ")
        rows.append([loss, model, report.seconds(seconds), f"{seconds / took[f'cross-entropy on {model}']:.2f}"])
    note = (
        f"Forward and backward of the last layer alone, in bfloat16, on {ROWS} rows of features of a model that was "
        f"trained on words with the loss named, classes repeated to {MANY}."
    )
    columns = ["loss", "scores of the model trained with", "time", "/ compiled cross-entropy"]
    return report.table("The linear heads on scores of trained models, on CUDA", note, columns, rows)


def trained(task: Task, losses: dict[str, Head]) -> tuple[dict[str, Any], dict[str, Training]]:
    """What each loss reaches, and a model of each."""
    found: dict[str, Any] = {"classes": task.classes, "heads": {}}
    timed = {}
    for name in HEADS:
        tuned = [Training(losses[name], task, rate, 1000, task.steps).trained() for rate in RATES]
        reached = [one.top1(task.data["dev"]) for one in tuned]
        found["heads"][name] = {"tuned": reached, "rate": RATES[reached.index(max(reached))]}
        timed[name] = lambda i, one=tuned[0]: one.step()
        print(name, "tuned", reached, flush=True)
    seconds = interleaved(timed, 7)
    last = {}
    for name in HEADS:
        one = found["heads"][name]
        one["step"], one["steps"] = seconds[name], int(task.steps * seconds["cross-entropy"] / seconds[name])
        for kind, steps in (("equal steps", task.steps), ("equal time", one["steps"])):
            if steps == task.steps and kind == "equal time":
                one[kind] = one["equal steps"]
                continue
            one[kind] = []
            for seed in range(SEEDS):
                last[name] = Training(losses[name], task, one["rate"], seed, steps).trained()
                one[kind].append(last[name].top1(task.data["test"]))
        print(name, one, flush=True)
    return found, last


def run() -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Tables and records; needs a CUDA device."""
    import torch

    if not torch.cuda.is_available():
        raise SystemExit("torch_words needs a CUDA device; its results stay as they are")
    losses = heads()
    found, last = trained(_task(), losses)
    found["head_seconds"] = _head_times(last, losses)
    print(found["head_seconds"], flush=True)
    device = {"name": torch.cuda.get_device_name(), "torch": torch.__version__, "cuda": torch.version.cuda}
    title = f"{device['name']} with PyTorch {device['torch']}"
    tables = [accuracy_table("The linear heads on text, on CUDA", "torch_words", found, title)]
    return [*tables, _time_table(found["head_seconds"])], {"device": device, **found}
