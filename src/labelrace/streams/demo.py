"""A generated stream of short texts with tags, for demonstrations: topics drift, and new tags appear."""

from __future__ import annotations

import random
from typing import Any

# The words of each tag: the last seven replace the first seven when the topics drift.
_TOPICS = {
    "billing": "invoice charge amount receipt euro refund iban subscription renewal plan",
    "login": "password account locked email code authenticator passkey device token session",
    "shipping": "parcel delivery courier address late tracking locker drone pickup slot",
    "returns": "return label box refund unopened exchange store voucher scan drop",
    "mobile": "phone screen tap crash android tablet watch widget gesture swipe",
    "printing": "printer paper ink page jam scanner cartridge duplex tray driver",
    "network": "router wifi signal cable slow mesh fibre modem latency outage",
    "security": "virus phishing hacked suspicious link breach leak firewall alert fraud",
    "search": "find results filter query empty index sort synonym ranking relevance",
    "export": "download file csv spreadsheet column api endpoint webhook json feed",
    "calendar": "meeting date invite reminder timezone booking slot recurring agenda sync",
    "language": "translation german french wrong text accent dictation subtitle voice dialect",
}
# The share of the stream after which some tags first appear.
_LATER = {"security": 0.25, "export": 0.4, "calendar": 0.55, "language": 0.7}
_COMMON = "the a my is not and please help since yesterday again with for it does when i we cannot why how still today"
# Probability that a word of a tag is in the subject, and that one is in the body.
_SAID = 0.7
_GREETINGS = ("Hello", "Hi", "Dear team", "Good morning")


def demo_tickets(n_rows: int = 6000, seed: int = 0) -> list[dict[str, Any]]:
    """Generate tickets with a number, a subject, a body and tags, in the order of their arrival.

    In the middle of the stream, three of the seven words of each tag are replaced by others. Four of the twelve tags
    appear only later.

    Parameters
    ----------
    n_rows : int, default=6000
    seed : int, default=0

    Returns
    -------
    list of dicts

    Examples
    --------
    >>> ticket = demo_tickets(100)[0]
    >>> list(ticket), ticket["ticket"], set(ticket["tags"]) <= {*_TOPICS}
    (['ticket', 'subject', 'body', 'tags'], 'T-1000', True)
    """
    draw = random.Random(seed)
    words = {tag: text.split() for tag, text in _TOPICS.items()}
    return [_ticket(draw, row, row / n_rows, words) for row in range(n_rows)]


def _ticket(draw: random.Random, number: int, time: float, words: dict[str, list[str]]) -> dict[str, Any]:
    """Generate the ticket at a time, the share of the stream that has passed."""
    common = _COMMON.split()
    known = [tag for tag in words if _LATER.get(tag, 0.0) <= time]
    # The first tags are the most frequent ones.
    weights = [1.0 / (rank + 2.0) for rank in range(len(known))]
    tags = list(dict.fromkeys(draw.choices(known, weights, k=draw.randint(1, 3))))
    # Of the ten words of a tag, the first seven are used before the drift, and the last seven after it.
    used = {tag: words[tag][:7] if time < 0.5 else words[tag][3:] for tag in known}
    # Tickets also contain words of other tags, and not always a word of their own.
    said = [draw.choice(used[tag]) for tag in tags if draw.random() < _SAID]
    others = [draw.choice(used[draw.choice(known)]) for _ in range(draw.randint(0, 2))]
    subject = [*(draw.choice(used[tag]) for tag in tags if draw.random() < _SAID), draw.choice(common)]
    body = [*said, *others, *draw.choices(common, k=12)]
    draw.shuffle(body)
    return {
        "ticket": f"T-{1000 + number}",
        "subject": " ".join(subject).capitalize(),
        "body": f"{draw.choice(_GREETINGS)}, {' '.join(body)}.",
        "tags": tags,
    }
