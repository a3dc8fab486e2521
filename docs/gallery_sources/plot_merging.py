"""
Merging two offices' taggers
============================

Two offices tag tickets, each its own, and cannot share them; what their taggers have learned they can. Both start from
one tagger that has learned 500 common tickets. ``emptied`` gives a copy that knows the columns and words of this start
and has learned nothing, so that ``merge`` counts each ticket once. The next tickets tell how good each tagger is.
"""

import matplotlib.pyplot as plt

import labelrace
from labelrace.measures import evaluate
from labelrace.streams.demo import demo_tickets

tickets = demo_tickets(12_000, seed=3)[9000:]  # where all tags occur
common, later, test = tickets[:500], tickets[500:2000], tickets[2000:3000]
# One office has billing, shipping and returns; the other has the rest.
money = {"billing", "shipping", "returns"}
rows_a = [row for row in later if money & set(row["tags"])]
rows_b = [row for row in later if not money & set(row["tags"])]

# %%
# The start, the two offices, and for comparison a tagger that has learned all tickets in one place.

start = labelrace.Tagger(tags="tags", id="ticket", random_state=0).partial_fit(common)
office_a = start.emptied().partial_fit(rows_a)
office_b = start.emptied().partial_fit(rows_b)
everything = labelrace.Tagger("tags", id="ticket", random_state=0).fit(common + later)
merged = labelrace.Tagger(tags="tags", id="ticket", random_state=0).partial_fit(common)
merged.merge(office_a).merge(office_b)
taggers = {
    "common start": start,
    "office A alone": office_a,
    "office B alone": office_b,
    "merged": merged,
    "all in one place": everything,
}

# %%

true = [set(row["tags"]) for row in test]
figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
for name, tagger in taggers.items():
    quality = evaluate(true, tagger.predict(test))["example_f1"]
    bar = axes.bar(name, quality, label=f"{name}: {tagger.n_rows_:,} tickets")
    axes.bar_label(bar, fmt="%.2f")
axes.set(xlabel="tagger", ylabel="F1 of a ticket's tags, mean", ylim=(0, 1.3))
axes.legend(loc="upper left", ncols=2)
plt.show()

# %%
# Each office alone knows only its own kind of tickets, and is no better than the common start. The merged tagger is
# as good as one that has learned all tickets in one place.
