"""Games over one label out of several: the probability simplex, and products of binary games."""
