"""Evaluation of online models: protocols, runs of many models, their records, and ranks."""

from labelrace.evaluation.checkpoint import Checkpoint
from labelrace.evaluation.curves import averages, cumulative, windowed
from labelrace.evaluation.holdout import holdout
from labelrace.evaluation.models import ModelSpec
from labelrace.evaluation.prequential import prequential
from labelrace.evaluation.progress import Progress
from labelrace.evaluation.ranks import Friedman, average_ranks, critical_difference, friedman, is_loss, rank
from labelrace.evaluation.records import read_run
from labelrace.evaluation.runner import run

__all__ = [
    "Checkpoint",
    "Friedman",
    "ModelSpec",
    "Progress",
    "average_ranks",
    "averages",
    "critical_difference",
    "cumulative",
    "friedman",
    "holdout",
    "is_loss",
    "prequential",
    "rank",
    "read_run",
    "run",
    "windowed",
]
