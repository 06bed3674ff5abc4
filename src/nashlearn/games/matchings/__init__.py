"""Games over matchings of two sets."""
