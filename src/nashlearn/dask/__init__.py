"""Training and answers on Dask collections: partitions stay where they are, sums travel.

Dask is the extra ``[dask]``; it is imported when a collection is met, never before.
"""

from nashlearn.dask.collections import is_collection

__all__ = ["is_collection"]
