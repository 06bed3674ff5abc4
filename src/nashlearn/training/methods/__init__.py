"""How weights are found: each method works on any problem that offers what it needs."""
