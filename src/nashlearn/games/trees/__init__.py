"""Games over trees: arborescences, with labels or parts, and undirected spanning trees."""
