"""Where the data comes from: files and catalogued datasets, whole or batch by batch."""

from labelrace.core.categorical import CategoricalMask
from labelrace.streams.batch import Dataset
from labelrace.streams.load import load_dataset, open_stream
from labelrace.streams.stream import Stream
from labelrace.streams.write import convert, write_dataset

__all__ = ["CategoricalMask", "Dataset", "Stream", "convert", "load_dataset", "open_stream", "write_dataset"]
