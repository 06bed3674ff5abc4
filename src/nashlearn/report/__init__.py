"""Reports: one HTML page for what a model costs, what is certified about it and where it errs.

Each function ``*_report_data`` takes a fitted model and labelled data that it was not trained on, and returns a plain
dictionary of numbers and text (``json.dumps`` accepts it; it is also what a machine may read). ``write_report`` turns
it into one self-contained page: no network, no file beside it, below 500 kB. ``write_explorer`` writes the loss
explorer, which needs no data.

::

    from nashlearn import report

    peers = report.table_baselines(model, X_train, y_train)
    data = report.classification_report_data(
        model, X_test, y_test, baselines=peers, training=(X_train, y_train), title="Kinds of wine"
    )
    report.write_report("report.html", data)

What they have in common:

- ``model`` is a fitted estimator, or a scikit-learn ``Pipeline`` that ends in one.
- ``baselines`` maps names to fitted estimators (anything with ``predict``) or to their answers for the same examples;
  a name with None is mentioned as not installed.
- ``learning`` is a learning curve, see :func:`learning_curve`.
- ``title`` heads the page. ``facts`` maps names to values shown under it, as ``{"data": "wine.csv", "rows": 1599}``;
  the model's parameters are added.
- Intervals are bootstrap percentiles at ``confidence``, drawn with the seed ``random_state``; examples are resampled as
  a whole (rows, sentences, pairs of frames), and differences from a baseline are paired.
- The certificate over time comes from ``history_`` where the estimator has it; without it the final one is shown.
- Labels and texts are escaped: they may hold any character.

Both writers write under another name in the same folder and then rename it, so that a reader never sees half a page; an
``OSError`` leaves what was there.
"""

from nashlearn.report.baselines import table_baselines
from nashlearn.report.boxes import tracking_report_data
from nashlearn.report.learning import learning_curve
from nashlearn.report.page import explorer_html, report_html, write_explorer, write_report
from nashlearn.report.tables import abstention_report_data, classification_report_data, ordinal_report_data
from nashlearn.report.tagging import tagging_report_data
from nashlearn.report.text_peers import parsing_baselines, tagging_baselines
from nashlearn.report.trees import parsing_report_data

__all__ = [
    "abstention_report_data",
    "classification_report_data",
    "explorer_html",
    "learning_curve",
    "ordinal_report_data",
    "parsing_baselines",
    "parsing_report_data",
    "report_html",
    "table_baselines",
    "tagging_baselines",
    "tagging_report_data",
    "tracking_report_data",
    "write_explorer",
    "write_report",
]
