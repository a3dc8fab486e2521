"""A yardstick for `labelrace serve`: a bare FastAPI endpoint that reads and answers the same JSON, and does nothing.

``python -m uvicorn benchmarks.bare_endpoint:app`` starts it as the service is started: uvicorn, one process. Its forms
are those that the service states in its OpenAPI.
"""

from __future__ import annotations

from fastapi import FastAPI

from labelrace.serve import forms

app = FastAPI()

_TAGS = [f"tag {number}" for number in range(10)]
_PROBABILITIES = {tag: 0.123456789 / number for number, tag in enumerate(_TAGS, 1)}


@app.get("/health/ready")
async def is_ready() -> dict[str, str]:
    """Answer that the endpoint can be used."""
    return {"status": "ready"}


@app.post("/v1/predict", response_model_exclude_none=True)
async def predict(body: forms.Predict) -> forms.Predictions:
    """Answer as the service does, with the same tags for every row."""
    rows = [
        forms.Predicted(
            id=None if row.id is None else str(row.id), tags=_TAGS[:2], probabilities=_PROBABILITIES, review=False
        )
        for row in body.rows
    ]
    return forms.Predictions(rows=rows, position=1)


@app.post("/v1/learn")
async def learn(body: forms.Learn) -> forms.Learned:
    """Answer as the service does, and learn nothing."""
    return forms.Learned(learned=len(body.rows), position=1)
