"""The search for the slow part: its statistics, its rounds, and what it names in fleets of numbers."""

import math
import random
from collections import Counter

import pytest

from benchmarks.find_slow import outcome, planted
from benchmarks.support.slow_fleet import Loss, SlowFleet, on_rails, searched
from nodetune.statistics.likelihood import BAD, Chances, evidence, level, spread
from nodetune.verify.find_slow import schedule
from nodetune.verify.find_slow.classify import classify
from nodetune.verify.find_slow.end_analysis import EndAnalysis, threshold
from nodetune.verify.find_slow.model import (
    GPU,
    HANG,
    JOINT,
    LINK,
    NODE,
    PAIRS,
    PATH,
    Classification,
    Fleet,
    GroupResult,
    GroupRun,
    Part,
    Round,
)
from nodetune.verify.find_slow.search import max_rounds

BIG = ("node", "gpu", "nic", "path", "link", "uplink", "hang", "wrong", "pair hang")
SIZES = (2, 3, 5, 8, 9, 17, 64, 65)


def named(result):
    return {each.part for each in result.culprits}


def fleet(count, seed, **more):
    found = SlowFleet(count, random.Random(seed), **more)
    found.noise, found.fall = 0.015, (0.0, 0.0)
    return found


@pytest.mark.parametrize("kind", BIG)
def test_a_part_that_loses_half_is_named(kind):
    slow = fleet(64, f"half {kind}")
    wanted = slow.plant(kind, 0.5)
    result = searched(slow)
    assert named(result) == {wanted}
    assert not result.shortfall


@pytest.mark.parametrize("count", [17, 65])
def test_a_slow_node_of_an_odd_fleet_is_named(count):
    slow = fleet(count, "odd")
    wanted = slow.plant("node", 0.5)
    assert named(searched(slow)) == {wanted}


def test_a_healthy_fleet_names_nothing():
    for seed in range(30):
        assert named(searched(SlowFleet(64, random.Random(f"healthy {seed}")))) == set()


def test_five_figures_that_are_short_by_chance_name_nothing():
    rng = random.Random("hist46h-818 64 healthy 0.0")  # of thousands of healthy fleets the one that had a name
    rng.uniform(0, 0)
    assert named(searched(SlowFleet(64, rng))) == set()


def test_a_small_loss_needs_three_times_the_odds_of_a_large_one():
    assert threshold(128, -0.05) - threshold(128, -0.5) == pytest.approx(math.log(3))


@pytest.mark.parametrize("seed", [110, 159, 171, 219])
def test_a_healthy_fleet_of_four_leaves_that_drifts_names_nothing(seed):
    """The domains' tournament has no witnesses, and with four leaves it is compared with earlier rounds."""
    drifting, _ = planted(32, "healthy", f"t1-{seed}", drift=0.01)
    assert named(searched(drifting)) == set()


def test_witnesses_that_fall_by_chance_are_no_drift():
    """Two pairs fell in the ring, were witnesses of the next rounds, and all of these were read 8 % too low."""
    slow, wanted = on_one_leaf(8, "sm-24 8 nic 0.5", "nic")
    assert named(searched(slow, more=6)) == {wanted}


def on_one_leaf(count, seed, kind):
    rng = random.Random(seed)
    slow = SlowFleet(count, rng, drift=rng.uniform(0, 0))
    slow.fleet = Fleet(slow.fleet.nodes, (0,) * count)
    return slow, slow.plant(kind, 0.5)


@pytest.mark.parametrize("kind", ["node", "nic", "path", "hang", "pair hang"])
@pytest.mark.parametrize("count", [4, 5, 7])
def test_a_fleet_of_few_nodes_is_decided(count, kind):
    slow, wanted = on_one_leaf(count, f"few {count}", kind)
    slow.noise, slow.fall = 0.015, (0.0, 0.0)
    assert named(searched(slow)) == {wanted}


@pytest.mark.parametrize("seed", [242, 249, 262, 296])
def test_a_pair_that_hangs_names_neither_end(seed):
    slow, wanted = planted(8, "pair hang", f"t1-{seed}")
    assert named(searched(slow, more=6)) <= wanted


@pytest.mark.parametrize("seed", [16, 94, 185, 203, 220])
def test_a_rail_of_a_broken_nodes_partner_is_not_a_path(seed):
    """A run that breaks as a whole shows nothing of its rails: it made a slow NIC look quick with one partner."""
    slow, truth = planted(4, "mixed", f"t1-{seed}")
    assert outcome(truth, searched(slow, more=3)) != "wrong"


@pytest.mark.parametrize("seed", [8, 40, 43, 70])
def test_a_node_that_hangs_now_and_then_with_several_partners_is_no_path(seed):
    slow, rng = SlowFleet(8, random.Random(f"flaky {seed}")), random.Random(seed)
    slow.fleet = Fleet(slow.fleet.nodes, (0,) * 8)

    def answer(wanted):
        hangs = [wanted.kind == PAIRS and 3 in group and rng.random() < 0.5 for group in wanted.groups]
        return [GroupResult((), HANG) if hung else each for hung, each in zip(hangs, slow.answer(wanted), strict=True)]

    assert named(searched(slow, answer=answer)) <= {Part(NODE, (3,))}


def test_a_slow_link_with_a_slower_path_is_not_two_paths():
    slow, truth = planted(8, "mixed", "t1-261")
    assert named(searched(slow)) <= truth


def test_one_pair_across_does_not_name_the_link():
    eight = Fleet(tuple("abcdefgh"), (0,) * 4 + (1,) * 4, ("one", "two"))
    ring = [(node, node + 1) for node in range(7)] + [(0, 7)]
    pairs = [*ring, (0, 2), (1, 3), (4, 6), (5, 7)]
    runs = [
        GroupRun(pair, (0.0,), "", 1, pair in ring, pair[0] // 4 == pair[1] // 4) for pair in pairs if pair != (3, 4)
    ]
    runs += [GroupRun((3, 4), (-0.7,), "", turn, turn == 1, near=False) for turn in range(1, 8)]
    found = classify(eight, [], runs)
    assert not found.named
    assert Part(LINK, (0, 1)) in found.doubts


def test_a_node_alone_on_its_leaf_is_named_by_runs_across():
    slow = fleet(33, "alone on its leaf")
    slow.fleet = Fleet(slow.fleet.nodes, tuple(node // 8 for node in range(33)), tuple("abcde"))
    slow.node[32] = slow.alone[32] = Loss(on_rails(0.5, (2,)))
    found = searched(slow).culprits
    assert {each.part for each in found} == {Part(GPU, (32,), 2)}
    assert found[0].runs and found[0].slow_with


def test_most_links_of_a_leaf_are_left_open():
    """They may be its uplink."""
    slow, (uplink,) = planted(33, "uplink", "t1-483", effect=0.05)
    result = searched(slow)
    assert not named(result)
    (doubt,) = [each for each in result.doubts if uplink in each.candidates]
    assert sum(part.kind == LINK for part in doubt.candidates) >= 2
    assert all(each is doubt or not set(each.candidates) & set(doubt.candidates) for each in result.doubts)


def test_a_fleet_that_drifts_names_only_the_slow_node():
    assert named(searched(fleet(64, "drift", drift=0.02))) == set()
    slow = fleet(64, "drift", drift=0.02)
    wanted = slow.plant("node", 0.3)
    assert named(searched(slow)) == {wanted}


def test_pairs_that_are_repeated_for_a_low_figure_do_not_move_the_fleet():
    """At 1,024 nodes, such pairs were most of the witnesses, came back by 4 %, and healthy links were read 4 % too low."""
    calm, answered = SlowFleet(128, random.Random("witnesses 6")), {}
    calm.noise, calm.fall = 0.03, (0.0, 0.0)

    def answer(wanted):
        answers = calm.answer(wanted)
        for group, each in zip(wanted.groups, answers, strict=True):
            answered[calm.rounds - 1, group] = tuple(map(math.log, each.figures))
        return answers

    result = searched(calm, answer=answer)
    assert len(result.rounds) > 6
    assert [run.rails for run in result.runs] == [answered[run.round, run.nodes] for run in result.runs]


def test_the_likeliest_of_the_links_in_doubt_is_tried_first():
    nodes = range(24)
    found = Classification([-9.0] * 24, set(nodes), set(nodes))
    found.doubts = {Part(LINK, (0, 1)): 0.5, Part(LINK, (0, 2)): 4.0, Part(LINK, (1, 2)): 1.0}
    them = Fleet(tuple(f"n{node}" for node in nodes), tuple(node // 8 for node in nodes), ("a", "b", "c"))
    pairs = schedule.RepeatPlan(them, found, Counter(), 2).pairs()
    assert {(one // 8, other // 8) for one, other in pairs} == {(0, 2)}


def test_short_uplinks_do_not_make_healthy_links_slow():
    for seed in range(5):
        assert named(searched(fleet(64, seed, oversubscribed=2.0))) == set()


def test_an_uplink_loses_what_was_planted_beyond_the_way_across():
    slow = fleet(64, "uplink")
    slow.noise, slow.cold = 0.0, set()
    (number,) = slow.plant("uplink", 0.05).at
    pairs = schedule.tournament(slow.fleet, 0)
    through = [number in {slow.fleet.domains[node] for node in pair} for pair in pairs]
    figures = [each.figures[0] for each in slow.answer(Round(PAIRS, tuple(pairs), loaded=True))]
    assert {(round(figure / max(figures), 6), slowed) for figure, slowed in zip(figures, through, strict=True)} == {
        (0.95, True),
        (1.0, False),
    }


def test_an_uplink_that_loses_5_per_cent_is_mostly_named():
    right = 0
    for seed in range(6):
        slow = fleet(64, f"uplink {seed}")
        wanted = slow.plant("uplink", 0.05)
        right += named(searched(slow)) == {wanted}
    assert right >= 4


def test_two_culprits_at_once_are_both_named():
    slow = fleet(64, "two")
    wanted = {slow.plant("node", 0.5), slow.plant("nic", 0.5)}
    assert len(wanted) == 2
    assert named(searched(slow)) == wanted


def test_what_breaks_is_said():
    for kind, fault in (("hang", "hang"), ("wrong", "wrong data")):
        slow = fleet(64, kind)
        slow.plant(kind, 0.5)
        assert [each.fault for each in searched(slow).culprits] == [fault]


def test_a_small_loss_beyond_the_noise_is_left_open():
    slow = fleet(8, "edge")
    slow.noise = 0.03
    part = slow.plant("node", 0.05)
    result = searched(slow)
    assert named(result) <= {part}
    assert all(each.more_rounds >= 0 and each.candidates for each in result.doubts)


@pytest.mark.parametrize(("figure", "shortfall"), [(97.2, 0.0), (96.4, 0.03)])
def test_the_others_together_may_be_half_of_the_smallest_loss_short(figure, shortfall):
    """The level of so many runs of 100 GB/s is 99.35: the upper quartile of what has noise."""
    calm = fleet(256, "calm")

    def answer(wanted):
        return [GroupResult((figure if wanted.kind == JOINT else 100.0,) * 8) for _ in wanted.groups]

    assert searched(calm, answer=answer).shortfall == pytest.approx(shortfall, abs=0.005)


def disjoint(pairs):
    """Whether no node is in two of them."""
    every = [node for pair in pairs for node in pair]
    return len(every) == len(set(every))


@pytest.mark.parametrize("count", SIZES)
def test_rounds_are_disjoint_and_bounded(count):
    slow = SlowFleet(count, random.Random(f"rounds {count}"))
    slow.plant("node", 0.2)
    result = searched(slow)
    assert len(result.rounds) <= max_rounds(count)
    assert all(disjoint(each.groups) for each in result.rounds)


def test_bounds_of_rounds_grow_with_the_logarithm():
    assert [max_rounds(count) for count in (8, 64, 1024)] == [10, 10, 14]


def test_more_rounds_go_on_with_what_is_open():
    slow = fleet(8, "more")
    slow.noise = 0.03
    slow.plant("node", 0.08)
    result = searched(slow, more=10)
    assert max_rounds(8) < len(result.rounds) == slow.rounds <= max_rounds(8) + 10


@pytest.mark.parametrize("count", SIZES)
def test_the_ring_has_every_neighbour_once(count):
    rounds = schedule.ring(count)
    edges = [pair for pairs in rounds for pair in pairs]
    assert len(set(edges)) == len(edges) == (count if count > 2 else 1)
    assert all(disjoint(pairs) for pairs in rounds)


@pytest.mark.parametrize("sizes", [(4, 4, 4, 4), (8,) * 8, (3, 5, 4, 4, 4), (4, 4, 4, 4, 4)])
def test_the_tournament_brings_every_domain_to_every_other(sizes):
    domains = tuple(number for number, size in enumerate(sizes) for _ in range(size))
    made = Fleet(tuple(map(str, range(len(domains)))), domains, tuple(map(str, range(len(sizes)))))
    met = set()
    for day in range(8):
        pairs = schedule.tournament(made, day)
        assert disjoint(pairs)
        met |= {tuple(domains[node] for node in pair) for pair in pairs}
    assert len(met) == len(sizes) * (len(sizes) - 1) / 2


def test_two_nodes_alone_name_neither():
    slow = fleet(2, "two nodes")
    slow.plant("nic", 0.5)
    assert named(searched(slow)) == set()


def test_the_level_is_that_of_the_good_half():
    figures = [random.Random(1).gauss(1.0, 0.01) for _ in range(20)] + [0.2] * 10
    assert level(figures) == pytest.approx(1.0, abs=0.02)
    assert level([BAD, BAD]) == 0.0


def test_noise_is_taken_from_the_upper_half():
    generator = random.Random(2)
    figures = [generator.gauss(0, 0.03) for _ in range(400)]
    assert spread([*figures, *[-0.5] * 100]) == pytest.approx(0.03, rel=0.1)
    assert spread([]) == pytest.approx(0.02)


def test_one_run_never_says_more_than_its_chance():
    chances = Chances()
    assert evidence([-0.1], 0.02, chances) <= -math.log(chances.any) + 0.1
    assert evidence([-0.7], 0.02, chances) <= -math.log(chances.deep) + 0.1
    assert evidence([BAD], 0.02, chances) <= math.log(1000) + 0.1


def test_a_fall_far_beyond_the_usual_loss_says_nothing():
    quick = [0.0, 0.01, -0.01]
    assert evidence([*quick, -0.7], 0.02, Chances()) == pytest.approx(evidence(quick, 0.02, Chances()), abs=0.5)


def test_repeats_of_one_pair_name_neither_end():
    good = [(a, b, 0.0) for a in range(6) for b in range(a + 1, 6) if (a, b) != (0, 1)]
    analysis = EndAnalysis(6, [*good, *[(0, 1, -0.5)] * 9])
    analysis.estimate()
    assert analysis.slow_ends(12) == {}


def test_a_low_figure_is_left_to_the_worse_end():
    pairs = [(a, b, -0.3 if 0 in (a, b) else 0.0) for a in range(6) for b in range(a + 1, 6)]
    analysis = EndAnalysis(6, pairs)
    odds = analysis.estimate().odds
    assert odds[0] > 10
    assert max(odds[1:]) < -3
    assert list(analysis.slow_ends(12)) == [0]


def test_the_answers_of_hosts_that_are_gone_do_not_count():
    slow = fleet(8, "gone")
    slow.plant("node", 0.5)

    def without(wanted):
        answers = slow.answer(wanted)
        return [GroupResult() if 7 in group else each for each, group in zip(answers, wanted.groups, strict=True)]

    assert all(7 not in part.at for part in named(searched(slow, answer=without)) if part.kind in (NODE, PATH, LINK))
