"""One hypothesis profile for all tests: compilation makes deadlines meaningless."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "nashlearn", deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("nashlearn")
