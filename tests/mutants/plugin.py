"""A plugin of pytest for runs in a copy of the repository, the current folder."""

from pathlib import Path

import pytest

ELSEWHERE = 99


def pytest_configure(config):
    """Refuse a library that was not imported from the copy; hypothesis must not shrink its examples."""
    from hypothesis import HealthCheck, Phase, settings

    import nashlearn

    if not Path(nashlearn.__file__).is_relative_to(Path.cwd()):
        pytest.exit(f"nashlearn was imported from {nashlearn.__file__}, not from {Path.cwd()}", ELSEWHERE)
    settings.register_profile(
        "mutants",
        deadline=None,
        max_examples=25,
        suppress_health_check=[HealthCheck.too_slow],
        phases=[Phase.explicit, Phase.generate],
        database=None,
    )
    settings.load_profile("mutants")
