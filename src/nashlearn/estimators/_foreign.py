"""Arguments of other libraries: each is refused with the line to write instead."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

__all__ = ["CHAINS", "COMMON", "GRADES", "ROWS", "advice"]

# What to write instead of an argument, given its value.
Advice = Mapping[str, Callable[[Any], str]]

_NONE_TO_CHOOSE = "Leave it out: the method follows from the loss, and training ends at the proven gap `tol`."
_FIRST = "Pass the costs as the first argument, `loss`: a matrix, a DataFrame, or {answer: {label: cost}}."


def _says(words: str) -> Callable[[Any], str]:
    return lambda value: words


COMMON: Advice = {
    "max_iterations": lambda value: f"Write max_iter={value!r}.",
    "eps": lambda value: f"Write tol={value!r}: here it is a proven relative duality gap.",
    "epsilon": lambda value: f"Write tol={value!r}: here it is a proven relative duality gap.",
    "solver": _says(_NONE_TO_CHOOSE),
    "algorithm": _says(_NONE_TO_CHOOSE),
    "inference_method": _says("Leave it out: inference is exact where that is possible, and `is_exact_` says so."),
    "learning_rate": _says(_NONE_TO_CHOOSE),
    "cost_matrix": _says(_FIRST),
    "costs": _says(_FIRST),
    "C": lambda value: (
        f"Write alpha = 1 / (N * {value!r}), where N is the number of predicted variables of all examples together: "
        "here alpha multiplies |w|^2 / 2 beside the mean loss, not beside the sum."
    ),
}

ROWS: Advice = {
    **COMMON,
    "C": lambda value: (
        f"Write alpha = 1 / (n * {value!r}) for n rows, and with two classes twice that: here alpha multiplies "
        "|w|^2 / 2 beside the mean loss, not beside the sum. The default, alpha='auto', is C = 1."
    ),
    "dual": _says(_NONE_TO_CHOOSE),
    "multi_class": _says("Leave it out: all classes are trained together."),
    "decision_function_shape": _says("Leave it out: all classes are trained together."),
    "probability": _says("Leave it out: predict_proba is there. With a kernel it is calibrated if smoothing > 0."),
    "shrinking": _says(_NONE_TO_CHOOSE),
    "l1_ratio": _says("Write penalty='l1' or penalty='l2'; the two are not mixed."),
    "class_weights": lambda value: f"Write class_weight={value!r}.",
    "n_jobs": _says(
        "Leave it out: training takes as many threads as linear algebra may use; threadpoolctl.threadpool_limits or "
        "OMP_NUM_THREADS says how many."
    ),
}

GRADES: Advice = {
    **ROWS,
    "C": lambda value: (
        f"Write alpha = 1 / (n * {value!r}) for n rows: here alpha multiplies |w|^2 / 2 beside the mean loss, not "
        "beside the sum. The default, alpha='auto', is C = 1."
    ),
}

CHAINS: Advice = {
    **COMMON,
    "c1": lambda value: (
        f"Write penalty='l1', alpha={value!r} / N, where N is the number of labels of all sequences together; one "
        "penalty at a time. Where c1 was 0, leave it out."
    ),
    "c2": lambda value: (
        f"Write alpha = 2 * {value!r} / N, where N is the number of labels of all sequences together: here alpha "
        "multiplies |w|^2 / 2 beside the mean loss of a label."
    ),
    "all_possible_states": lambda value: f"Write unseen_pairs={value!r}.",
    "all_possible_transitions": _says("Leave it out: all transitions have weights."),
    "min_freq": _says("Leave rare features out of X, or write penalty='l1'."),
    "delta": _says("Write tol=...: here it is a proven relative duality gap."),
    "period": _says("Leave it out; max_time=... ends training after so many seconds."),
    "num_memories": _says(_NONE_TO_CHOOSE),
    "linesearch": _says(_NONE_TO_CHOOSE),
    "max_linesearch": _says(_NONE_TO_CHOOSE),
    "model_filename": _says("Leave it out, and write nashlearn.save(model, path) after training."),
    "keep_tempfiles": _says("Leave it out: there are no temporary files."),
}


def advice(estimator: str, known: Iterable[str], given: Mapping[str, Any], foreign: Advice) -> str:
    """What to say of arguments that are not ``known``: of each what to write instead; empty where all are known."""
    known, said = list(known), []
    for name in (name for name in given if name not in known):
        if name in foreign:
            said.append(f"{estimator} has no argument {name!r}. {foreign[name](given[name])}")
            continue
        near = difflib.get_close_matches(name, known, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else f" It takes {', '.join(known)}."
        said.append(f"{estimator} has no argument {name!r}.{hint}")
    return " ".join(said)
