"""Evaluation of online models: protocols, runs of many models, their records, and ranks."""

from labelrace.base.frames import records_frame
from labelrace.evaluation.checkpoint import Checkpoint, as_reliability, averages, cumulative, memory_meter, windowed
from labelrace.evaluation.experiment import ModelSpec, as_specs, open_source, run
from labelrace.evaluation.holdout import holdout
from labelrace.evaluation.prequential import prequential
from labelrace.evaluation.ranks import Friedman, critical_difference, friedman, rank
from labelrace.evaluation.records import FORMAT, Results, read_run
from labelrace.evaluation.workers import Progress
from labelrace.measures import is_loss

__all__ = [
    "FORMAT",
    "Checkpoint",
    "Friedman",
    "ModelSpec",
    "Progress",
    "Results",
    "as_reliability",
    "as_specs",
    "averages",
    "critical_difference",
    "cumulative",
    "friedman",
    "holdout",
    "is_loss",
    "memory_meter",
    "open_source",
    "prequential",
    "rank",
    "read_run",
    "records_frame",
    "run",
    "windowed",
]
