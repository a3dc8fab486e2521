"""When two means agree, and why."""

import pytest

from labelrace.experiments.published import Estimate, Reference, judge


@pytest.mark.parametrize(
    ("mean", "reason"),
    [
        (0.225, "rounding"),
        (0.2151, "rounding"),
        (0.2394, "chance"),
        (0.245, "spread"),
        (0.2461, "differs"),
        (0.19, "differs"),
    ],
)
def test_reasons(mean, reason):
    # Half a digit is 0.005; two standard errors are 2 √(0.01²/10 + 0.021²/10) = 0.0147; one deviation is 0.021.
    verdict = judge(Estimate(mean, sd=0.01, runs=10), Reference(0.22, decimals=2, sd=0.021, runs=10))
    assert verdict.reason == reason
    assert verdict.agrees == (reason != "differs")
    assert verdict.difference == pytest.approx(mean - 0.22)


def test_without_randomness_only_rounding_counts():
    theirs = Reference(0.35, decimals=2, sd=None, runs=10)
    assert judge(Estimate(0.3549, sd=None, runs=1), theirs).agrees
    assert not judge(Estimate(0.3551, sd=None, runs=1), theirs).agrees


def test_an_unknown_deviation_is_taken_to_be_ours():
    theirs = Reference(0.5, decimals=3, sd=None, runs=10)
    # Two standard errors of the difference: 2 √(2 · 0.1²/10) = 0.0894.
    assert judge(Estimate(0.589, sd=0.1, runs=10), theirs).reason == "chance"
    assert not judge(Estimate(0.591, sd=0.1, runs=10), theirs).agrees


def test_a_deviation_printed_as_zero_is_zero():
    assert not judge(Estimate(0.26, sd=0.0, runs=10), Reference(0.25, 2, 0.0, 10)).agrees
