"""Speed, growth, memory and start-up of nashlearn beside its peers: ``python -m benchmarks [part ...]``."""
