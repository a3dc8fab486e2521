"""Data from files and from the catalog of datasets, as a whole or batch by batch."""

from labelrace.base.categorical_mask import CategoricalMask
from labelrace.streams.dataset import Dataset, Stream
from labelrace.streams.formats import load_dataset, open_stream, register_format, write_dataset

__all__ = ["CategoricalMask", "Dataset", "Stream", "load_dataset", "open_stream", "register_format", "write_dataset"]
