"""The generated tickets."""

from __future__ import annotations

import numpy as np

from labelrace.streams.demo import demo_tickets


def test_the_same_seed_gives_the_same_tickets():
    assert demo_tickets(50) == demo_tickets(50)
    assert demo_tickets(50, seed=1) != demo_tickets(50)
    assert len({ticket["ticket"] for ticket in demo_tickets(50)}) == 50


def test_tags_appear_and_words_drift():
    tickets = demo_tickets(2000)
    first = {tag for ticket in tickets[:500] for tag in ticket["tags"]}
    last = {tag for ticket in tickets[-500:] for tag in ticket["tags"]}
    assert last - first == {"security", "export", "calendar", "language"}
    has_word = np.array(["invoice" in f"{ticket['subject']} {ticket['body']}".lower() for ticket in tickets])
    assert has_word[:1000].sum() > 20
    assert not has_word[1000:].any()
    assert all(1 <= len(ticket["tags"]) <= 3 for ticket in tickets)
