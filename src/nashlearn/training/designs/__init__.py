"""How weights become scores: linear maps of features, and their adjoints."""
