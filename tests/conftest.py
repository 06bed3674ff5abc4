"""What all tests share: one thread, a hypothesis profile without deadlines, and the papers' data."""

import os

# Tests run in as many processes as there are cores, where pools of threads would wait for each other. Before NumPy or
# PyTorch is imported; tests of threads make their own.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from hypothesis import HealthCheck, settings

from nashlearn.datasets import data_home

settings.register_profile(
    "nashlearn", deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("nashlearn")


def _absent() -> bool:
    try:
        return not (data_home() / "multiclass").is_dir()
    except FileNotFoundError:
        return True


def pytest_collection_modifyitems(items):
    """Skip, with the reason, the tests marked ``data`` where the papers' data are absent."""
    if _absent():
        for item in items:
            if item.get_closest_marker("data"):
                item.add_marker(pytest.mark.skip(reason="the data are absent: set NASHLEARN_DATA"))
