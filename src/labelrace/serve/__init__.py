"""A tagger as a service: it learns from every correction, loses nothing, and has pages where a team teaches it.

What people said is the truth, and the model is what one gets by learning it in order. So the service is an append-only
journal (`journal`) and a model that is a fold over it (`fold`): every process that follows the journal has the same
model at the same position, and a process that was killed folds again what came after its newest snapshot
(`snapshots`). `service` has the only threads, `api` the only HTTP, `pages` what people see, `client` the other side.

It needs the extra ``serve``; `labelrace serve` starts it.
"""
