"""How Sphinx builds these pages: `make docs`, or `sphinx-build -W -n docs build/docs`."""

from __future__ import annotations

import inspect
import re
import warnings
from importlib.metadata import version as installed
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math import latex2mathml

HERE = Path(__file__).resolve().parent

project = "nashlearn"
author = "The nashlearn developers"
copyright = author  # the name that Sphinx looks for
release = version = installed("nashlearn")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["**/*.ipynb", "gallery/**/*.py"]
nitpicky = True
# Objects of other projects; their inventories would have to be fetched.
nitpick_ignore_regex = [
    ("py:.*", r"(torch|sklearn|numpy|scipy|dask|onnx|skops)\..*"),
    ("py:mod", r"nashlearn\.(games|training|solvers|dask)\.[\w.]+"),  # modules that hold no public name
]
suppress_warnings = ["ref.citation"]  # works that only benchmarks and reproductions cite

html_theme = "furo"
html_math_renderer = "mathml"
html_title = f"nashlearn {release}"
html_copy_source = False
html_show_sphinx = False
templates_path = ["_templates"]

myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

autosummary_generate = True
autodoc_typehints = "none"  # docstrings say what arguments are
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_param = False
napoleon_custom_sections = [("Attributes", "params_style")]
napoleon_use_rtype = False

sphinx_gallery_conf = {
    "examples_dirs": str(HERE.parent / "examples/gallery"),
    "gallery_dirs": "gallery",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "min_reported_time": 5,
    "show_memory": False,
    "remove_config_comments": True,
    "backreferences_dir": None,
}
warnings.filterwarnings("ignore", category=DeprecationWarning)

# scikit-learn adds these to every estimator; its own pages explain them.
INHERITED = re.compile(r"set_\w+_request|get_metadata_routing|get_params|set_params|__\w+__")


def skip_inherited(app: Any, what: str, name: str, thing: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what scikit-learn and PyTorch give to every class."""
    home = getattr(inspect.unwrap(thing) if callable(thing) else thing, "__module__", None) or ""
    foreign = home.partition(".")[0] in ("sklearn", "torch", "numpy", "builtins")
    return True if INHERITED.fullmatch(name) or (foreign and callable(thing)) else None


def list_citations(app: Any, page: str, source: list[str]) -> None:
    """The list of references as citations, so that keys in docstrings lead to it."""
    if page == "references":
        head, *works = re.split(r"^- \*\*\[(\w+)\]\*\* ", source[0], flags=re.MULTILINE)
        entries = (f".. [{key}] {text.strip()}\n" for key, text in zip(works[::2], works[1::2], strict=True))
        source[0] = f"{head}```{{eval-rst}}\n{''.join(entries)}```\n"


def mathml(self: Any, node: Any) -> None:
    """Formulae as MathML, which browsers draw without a script or a network."""
    formula = latex2mathml.tex2mathml(node.astext().strip(), as_block=isinstance(node, nodes.math_block))
    self.body.append(formula)
    raise nodes.SkipNode


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.add_html_math_renderer("mathml", (mathml, None), (mathml, None))
    app.connect("autodoc-skip-member", skip_inherited)
    app.connect("source-read", list_citations)
