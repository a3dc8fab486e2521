"""
Choosing a threshold and a precision target
===========================================

How many tags should a tagger give? Few sure ones are nearly all right, but leave many rows to people. Instead of a
threshold on probabilities one can ask for a precision, the share of given tags that is right: the tagger predicts rows
before it learns them, and finds the threshold by itself. We ask for several precisions and look at the next tickets.
"""

import matplotlib.pyplot as plt
import numpy as np

import labelrace
from labelrace.streams.demo import demo_tickets

tickets = demo_tickets(6000, seed=1)
tagger = labelrace.Tagger("tags", id="ticket", random_state=0).fit(tickets[:4000])
curve = tagger.precision_curve_  # what each least confidence leads to, on recent rows

# %%
# The next 2,000 tickets come in batches of 250. Each is predicted once for every precision, and then learned.

asked = [0.75, 0.8, 0.85, 0.9, 0.95]
right, given, handled = np.zeros(5), np.zeros(5), np.zeros(5)
for start in range(4000, 6000, 250):
    batch = tickets[start : start + 250]
    for number, precision in enumerate(asked):
        predicted = tagger.set_params(precision=precision).predict(batch)
        for row, tags in zip(batch, predicted, strict=True):
            right[number] += len(tags & set(row["tags"]))
            given[number] += len(tags)
            handled[number] += bool(tags)
    tagger.partial_fit(batch)

# %%
# On the left what the tagger knew after 4,000 tickets, on the right what came out.

figure, (left, outcome) = plt.subplots(
    1, 2, figsize=(9, 4), layout="constrained", sharey=True
)
left.plot(curve.confidence, curve.precision, label="share of given tags that are right")
left.plot(curve.confidence, curve.handled, "--", label="share of rows that get a tag")
left.set(xlabel="threshold: least confidence of a tag", ylabel="share", ylim=(0, 1.02))
outcome.plot(asked, right / given, "o-", label="share of given tags that were right")
outcome.plot(asked, handled / 2000, "s--", label="share of rows that got a tag")
outcome.plot(asked, asked, color="gray", linestyle=":", label="as asked for")
outcome.set(xlabel="precision asked for", xticks=asked)
for axes in (left, outcome):
    axes.legend(loc="lower left")
plt.show()

# %%
# The tags were right at least as often as asked for, and the more was asked for, the fewer rows got one. Where tags are
# right often enough anyway, as for 0.75 and 0.8 here, asking for it changes nothing.
