"""Data larger than memory: Parquet, pyarrow datasets, Dask and iterators of batches, read pass by pass."""
