"""
Explaining a tag
================

Why was a ticket given this tag? The default is linear, so the score of a tag is a sum, and each word of the ticket has
its part in it. We take one ticket that has been given two tags and draw the words with the largest parts: to the right
what speaks for the tag, to the left what speaks against it.
"""

import matplotlib.pyplot as plt

import labelrace
from labelrace.streams.demo import demo_tickets

tickets = demo_tickets(3000, seed=2)
tagger = labelrace.Tagger("tags", id="ticket", random_state=0).fit(tickets[:2500])

# %%
# The first of the next tickets with two tags, both predicted.

new = tickets[2500:]
predicted = tagger.predict(new)
both = zip(new, predicted, strict=True)
ticket, tags = next((row, tags) for row, tags in both if len(tags) == 2)
print(ticket)
print("predicted:", sorted(tags))

# %%
# ``explain`` returns for each tag a list of words, or values of other columns, with their parts.

explained = tagger.explain(ticket, n_words=8)
figure, both = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", sharex=True)
for axes, (tag, words) in zip(both, sorted(explained.items()), strict=True):
    names, amounts = zip(*reversed(words), strict=True)
    colors = ["tab:blue" if amount > 0 else "tab:orange" for amount in amounts]
    axes.barh(names, amounts, color=colors)
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set(title=tag, xlabel="part of the score", ylabel="column: word")
colors = ("tab:blue", "tab:orange")
speaks = [plt.Rectangle((0, 0), 1, 1, color=color) for color in colors]
both[1].legend(speaks, ["for the tag", "against it"], loc="lower right")
plt.show()

# %%
# In both columns one word carries the tag: "iban" that of billing, "fibre" that of network. Words that are in all kinds
# of tickets, such as "and" or "since", have hardly any part.
