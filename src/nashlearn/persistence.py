"""Models in files: saved with what they were trained on and what is certified about them, loaded without running code.

A file is one of `skops <https://skops.readthedocs.io>`_ (a zip archive) with one more entry, ``nashlearn.json``: the
version of the format and of the libraries, the schema of the data, the certificate of training, a summary of it, and a
checksum of all that. Loading builds objects of the types in ``TRUSTED`` and of those that skops trusts, scikit-learn's
and NumPy's; a file that asks for any other is refused, and so is one that was changed or cut off. The checksum notices
accidents and careless hands; it is no signature: whoever can forge a model can forge its checksum.

    nashlearn.save(model, "wine.model")
    model = nashlearn.load("wine.model")
    nashlearn.persistence.read_info("wine.model")["certificate"]
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import re
import zipfile
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from nashlearn.training.checkpoint import replacing

__all__ = ["FORMAT", "TRUSTED", "ModelFileError", "fitted_parts", "load", "read_info", "save"]

FORMAT = 1
_INFO = "nashlearn.json"
_SCHEMA = "schema.json"  # in which skops names the types
_MOST = 1 << 33  # bytes that an archive may claim to unpack to,
_RATIO = 100  # and how many times its own size, once they are more than
_FREE = 1 << 28
_PARTS: dict[str, type] = {
    **dict.fromkeys(("nashlearn", "scikit-learn", "numpy", "skops", "python", "model"), str),
    **dict.fromkeys(("schema", "certificate", "summary"), dict),
}

# What to do about a parameter that is a function.
_INSTEAD = {
    "callback": "set_params(callback=None) before saving",
    "game": "pass one game instead, where all examples have the same",
}

# Types, and functions of kernels, that models are made of. All are data and arithmetic: none reads, writes or runs.
TRUSTED = (
    "functools.partial",  # of one of the functions below
    "nashlearn.estimators._network_input.NamedFeatures",
    "nashlearn.estimators.abstainer.NashAbstainer",
    "nashlearn.estimators.classifier.NashClassifier",
    "nashlearn.estimators.fscore.NashFScore",
    "nashlearn.estimators.matcher.NashMatcher",
    "nashlearn.estimators.network.NashMarkovNetwork",
    "nashlearn.estimators.ordinal.NashOrdinalClassifier",
    "nashlearn.estimators.parser.NashParser",
    "nashlearn.estimators.predictor.NashPredictor",
    "nashlearn.estimators.tagger.NashTagger",
    "nashlearn.game.Game",
    "nashlearn.games.enumerated.Enumerated",
    "nashlearn.games.hamming.Hamming",
    "nashlearn.games.matchings.matching.MatchingGame",
    "nashlearn.games.matchings.matching.Matchings",
    "nashlearn.games.networks.cliques.CliqueArrays",
    "nashlearn.games.networks.cliques.Cliques",
    "nashlearn.games.networks.game.MarkovGame",
    "nashlearn.games.networks.junction.CliqueSolver",
    "nashlearn.games.networks.local.LocalSolver",
    "nashlearn.games.networks.polytopes.Labellings",
    "nashlearn.games.networks.polytopes.LocalPolytope",
    "nashlearn.games.networks.polytopes.Replies",
    "nashlearn.games.networks.replies.NodeCosts",
    "nashlearn.games.networks.stars.Incidence",
    "nashlearn.games.rows.abstain.Abstain",
    "nashlearn.games.rows.cost.Cost",  # where 0.1 has it
    "nashlearn.games.rows.cost.CostGame",
    "nashlearn.games.rows.ordinal.Absolute",
    "nashlearn.games.rows.ordinal.Squared",
    "nashlearn.games.rows.simplex.Simplex",
    "nashlearn.games.rows.simplex.SimplexGame",
    "nashlearn.games.rows.weighted.WeightedZeroOne",
    "nashlearn.games.rows.zero_one.ZeroOne",
    "nashlearn.games.trees.arborescence.ArborescenceGame",
    "nashlearn.games.trees.arborescence.Arborescences",
    "nashlearn.games.trees.spanning.SpanningTreeGame",
    "nashlearn.games.trees.spanning.SpanningTrees",
    "nashlearn.parsing.ArcLabeller",
    "nashlearn.solvers.matrix_game.Cost",
    "nashlearn.tabular.columns.TableColumns",
    "nashlearn.tabular.dates.DateStyle",
    "nashlearn.tabular.numbers.NumberStyle",
    "nashlearn.tabular.words.WordFeatures",
    "nashlearn.tagging.TokenFeatures",  # of version 0.1
    "nashlearn.tagging.features.TokenFeatures",
    "nashlearn.tagging.gazetteers.Gazetteer",
    "nashlearn.tagging.groups.WordGroups",
    "nashlearn.training.driver.Trained",
    "nashlearn.training.designs.gram.Kernel",
    "nashlearn.training.designs.gram._gaussian",
    "nashlearn.training.designs.gram._polynomial",
    "nashlearn.training.fixed_point.FixedPoints",
    "nashlearn.training.fixed_point.Search",
    "nashlearn.training.fixed_point.Step",
    "nashlearn.training.penalties.Absolute",
    "nashlearn.training.penalties.Squared",
    "nashlearn.training.progress.Round",
    "nashlearn.estimators._development.DevRound",
    "nashlearn.training.score_bound.ScoreBound",
    "nashlearn.training.methods.stream.Stream",
    "numpy.dtype",
    "scipy.sparse._csr.csr_array",
    "scipy.sparse._csr.csr_matrix",
    "sklearn.metrics.pairwise.laplacian_kernel",
    "sklearn.metrics.pairwise.polynomial_kernel",
)

# Where 0.1 had the modules of some of these types: files that it wrote name them so.
_MOVED = {
    "nashlearn.games.abstain": "nashlearn.games.rows.abstain",
    "nashlearn.games.cost": "nashlearn.games.rows.cost",
    "nashlearn.games.ordinal": "nashlearn.games.rows.ordinal",
    "nashlearn.games.simplex": "nashlearn.games.rows.simplex",
    "nashlearn.games.zero_one": "nashlearn.games.rows.zero_one",
    "nashlearn.tabular": "nashlearn.tabular.columns",
    "nashlearn.training.fit": "nashlearn.training.driver",
    "nashlearn.training.gram": "nashlearn.training.designs.gram",
    "nashlearn.training.streaming": "nashlearn.training.methods.stream",
}


class ModelFileError(ValueError):
    """A model that cannot be saved, or a file that is no model to load; the message says why and what to do."""


def save(
    model: Any,
    path: str | PathLike[str],
    *,
    schema: Mapping[str, Any] | None = None,
    summary: Mapping[str, Any] | None = None,
    trusted: Sequence[type | str] = (),
) -> None:
    """Save a fitted estimator, a pipeline that ends in one, or a dictionary of them, whole or not at all.

    Parameters
    ----------
    model : fitted estimator, Pipeline, or dict
    path : path
        An older file is replaced when the new one is complete.
    schema, summary : mappings that JSON can hold, optional
        What the data were, and what else to keep about the training;
        :func:`nashlearn.persistence.read_info` gives them back.
    trusted : sequence of types or of their full names, optional
        Types of your own that the model holds, such as the polytopes of its game. They must be importable where the
        file is loaded, and :func:`load` must be told of them too.

    Raises
    ------
    ModelFileError
        Where the model has parts that cannot be saved, such as a callable loss, kernel or callback.
    """
    skops = _skops()
    parts = fitted_parts(model)
    if not parts:
        raise ModelFileError(f"{type(model).__name__} is no fitted estimator of nashlearn, nor a pipeline with one.")
    _refuse_unwritable(parts)
    content = skops.io.dumps(model, compression=zipfile.ZIP_DEFLATED)
    if _swollen(content):  # weights that are nearly all 0
        content = skops.io.dumps(model, compression=zipfile.ZIP_STORED)
    strange = sorted(set(skops.io.get_untrusted_types(data=content)) - set(_trusted(trusted)))
    if strange:
        raise ModelFileError(
            f"The model cannot be saved: it holds {', '.join(strange)}, which would not be loaded. Name types of your "
            "own in trusted=[...], in save and in load."
        )
    info = {
        "format": FORMAT,
        **_versions(),
        "model": _named(model),
        "schema": dict(schema or {}),
        "certificate": {name: _certificate(part) for name, part in parts.items()},
        "summary": dict(summary or {}),
    }
    buffer = io.BytesIO(content)
    with zipfile.ZipFile(buffer, "a", compression=zipfile.ZIP_DEFLATED) as archive:
        info["sha256"] = _digest(archive, info)
        archive.writestr(_INFO, json.dumps(info, indent=1))
    with replacing(Path(path).resolve()) as file:
        file.write(buffer.getbuffer())


def load(path: str | PathLike[str], *, trusted: Sequence[type | str] = ()) -> Any:
    """The model in a file that :func:`save` wrote, by this version or an earlier one. No code in the file is run.

    Parameters
    ----------
    path : path
    trusted : sequence of types or of their full names, optional
        Types of your own that may be built from the file, as they were named to :func:`save`. Name none that you do not
        know: building an object may run the code of its class.

    Raises
    ------
    ModelFileError
        Where the file is foreign, damaged, changed since it was written, or from a later format.
    """
    skops = _skops()
    from skops.io.exceptions import UntrustedTypesFoundException

    content = Path(path).read_bytes()
    _checked_info(path, content)
    try:
        return skops.io.loads(_with_new_names(content), trusted=_trusted(trusted))
    except UntrustedTypesFoundException as error:
        raise ModelFileError(f"{path} is refused: it asks for types that are not trusted. {error}") from None
    except Exception as error:  # the checksum is right: this was made so, or by a library that is no longer compatible
        raise ModelFileError(f"{path} cannot be loaded: {type(error).__name__}: {error}") from error


def _trusted(more: Sequence[type | str]) -> list[str]:
    """Names of all types that a file may ask for."""
    return [*TRUSTED, *(one if isinstance(one, str) else f"{one.__module__}.{one.__qualname__}" for one in more)]


def _with_new_names(content: bytes) -> bytes:
    """An archive whose types are named by the modules that they are in now."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        schema = archive.read(_SCHEMA).decode()
        named = re.sub(r'(?<="__module__": ")[\w.]+(?=")', lambda found: _MOVED.get(found[0], found[0]), schema)
        if named == schema:
            return content
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as renamed:
            for name in archive.namelist():
                renamed.writestr(name, named if name == _SCHEMA else archive.read(name))
    return buffer.getvalue()


def read_info(path: str | PathLike[str]) -> dict[str, Any]:
    """What a file says about its model: versions, schema, certificate, summary. The model is checked, not built."""
    return _checked_info(path, Path(path).read_bytes())


def _checked_info(path: str | PathLike[str], content: bytes) -> dict[str, Any]:
    """The entry about the model, after every check that needs no object of it."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            names = archive.namelist()
            if _INFO not in names:
                raise ModelFileError(f"{path} is no model of nashlearn: it has no {_INFO}.")
            if _swollen(content) or len(set(names)) != len(names):
                raise ModelFileError(f"{path} is no model of nashlearn: its table of contents is not one of ours.")
            info = json.loads(archive.read(_INFO))
            given = info.pop("sha256", None) if isinstance(info, dict) else None
            if given is None or not isinstance(info.get("format"), int):
                raise ModelFileError(f"{path} is no model of nashlearn: {_INFO} lacks a format or a checksum.")
            if info["format"] > FORMAT:
                raise ModelFileError(
                    f"{path} was written by nashlearn {info.get('nashlearn')}, in a format that this version, "
                    f"{_versions()['nashlearn']}, does not know. Upgrade nashlearn."
                )
            if _digest(archive, info) != given:
                raise ModelFileError(f"{path} was changed after it was saved: its checksum is wrong. Train it again.")
            wrong = [name for name, kind in _PARTS.items() if not isinstance(info.get(name), kind)]
            if wrong or not all(_is_certificate(one) for one in info["certificate"].values()):
                about = ", ".join(wrong or ["certificate"])
                raise ModelFileError(f"{path} is no model of nashlearn: {_INFO} says nothing, or nonsense, of {about}.")
    except ModelFileError:
        raise
    except zipfile.BadZipFile:
        raise ModelFileError(f"{path} is no saved model, or only a part of one: it is no complete archive.") from None
    except Exception as error:  # a damaged archive fails in as many ways as there are bytes
        raise ModelFileError(f"{path} is damaged: {type(error).__name__}: {error}") from None
    return info


def _is_certificate(found: Any) -> bool:
    return isinstance(found, dict) and isinstance(found.get("history"), list)


def _swollen(content: bytes) -> bool:
    """Whether an archive claims to unpack to far more than it is, or is packed in a way that is not ours."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        items = archive.infolist()
    total = sum(item.file_size for item in items)
    ours = all(item.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for item in items)
    return not ours or total > _MOST or total > max(_FREE, _RATIO * len(content))


def _digest(archive: zipfile.ZipFile, info: Mapping[str, Any]) -> str:
    """SHA-256 of all entries but the one about the model, and of what that one says."""
    digest = hashlib.sha256(json.dumps(info, sort_keys=True).encode())
    for name in sorted(set(archive.namelist()) - {_INFO}):
        with archive.open(name) as file:
            inner = hashlib.file_digest(file, "sha256")  # type: ignore[arg-type]  # entries of archives have readinto
        digest.update(f"{name}\n{inner.hexdigest()}\n".encode())
    return digest.hexdigest()


def _versions() -> dict[str, str]:
    import platform
    from importlib.metadata import version

    libraries = {name: version(name) for name in ("nashlearn", "scikit-learn", "numpy", "skops")}
    return {**libraries, "python": platform.python_version()}


def _skops() -> Any:
    try:
        import skops.io
    except ModuleNotFoundError as error:
        words = "Saved models need skops: pip install skops, or pip install '.[cli]' in a clone of nashlearn."
        raise ModuleNotFoundError(words, name=error.name) from None
    return skops


def fitted_parts(model: Any, name: str = "model") -> dict[str, Any]:
    """The fitted estimators of this library in a model, by name: those that a certificate is kept of."""
    if hasattr(model, "dual_gap_"):
        return {name: model}
    if hasattr(model, "steps"):
        return fitted_parts(model.steps[-1][1], name)
    if isinstance(model, Mapping):
        return dict(one for key, part in model.items() for one in fitted_parts(part, str(key)).items())
    return fitted_parts(model.classifier_, name) if hasattr(model, "classifier_") else {}


def _named(model: Any) -> str:
    if isinstance(model, Mapping):
        return ", ".join(f"{key}: {_named(part)}" for key, part in model.items())
    if hasattr(model, "steps"):
        return " > ".join(type(step).__name__ for _, step in model.steps)
    return type(model).__name__


def _refuse_unwritable(parts: Mapping[str, Any]) -> None:
    """Refuse parameters that no file may hold, with what could be done."""
    for estimator in parts.values():
        for name, value in estimator.get_params(deep=False).items():
            if all(hasattr(value, part) for part in ("index", "columns", "to_dict")):
                raise ModelFileError(
                    f"{type(estimator).__name__} cannot be saved: {name} is a data frame. Write model.set_params("
                    f"{name}=model.{name}.to_dict(orient='index')) first: the same costs in a dictionary, with no need "
                    "to train again."
                )
            if callable(value):
                advice = _INSTEAD.get(name, "use a name or a cost matrix")
                raise ModelFileError(
                    f"{type(estimator).__name__} cannot be saved: {name} is a function, and files hold no code; "
                    f"{advice}."
                )


def _certificate(estimator: Any) -> dict[str, Any]:
    return {
        "estimator": type(estimator).__name__,
        "objective": _finite(float(estimator.objective_)),
        "dual_gap": _finite(float(estimator.dual_gap_)),
        "tol": float(estimator.tol),
        "n_iter": int(estimator.n_iter_),
        "history": [[_finite(value) for value in row] for row in getattr(estimator, "history_", [])],
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
