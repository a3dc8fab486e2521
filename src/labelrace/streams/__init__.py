"""Where the data comes from: files and catalogued datasets, whole or batch by batch."""

from labelrace.streams.batch import Dataset
from labelrace.streams.categorical import CategoricalMask
from labelrace.streams.load import load_dataset

__all__ = ["CategoricalMask", "Dataset", "load_dataset"]
