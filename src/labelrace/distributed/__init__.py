"""Many rows, many machines: the same models on Dask.

`fit` learns a model or a tagger in shares on a cluster, `predict` predicts many rows there, and `evaluate` runs many
models on many datasets. They need the extra ``dask`` (``pip install 'labelrace[dask]'``). See docs/guide/scale.md.
"""

from __future__ import annotations

from labelrace.distributed.evaluating import evaluate
from labelrace.distributed.fitting import Progress, fit
from labelrace.distributed.predicting import predict

__all__ = ["Progress", "evaluate", "fit", "predict"]
