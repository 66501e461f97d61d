"""Every number that decides whether something is worse than its peers or its past, and where it comes from.

A string below a constant says what it decides and, after `Source:`, where it comes from; without one, the source of its heading
holds. docs/generate.py makes the table of docs/project/statistics.md of them. Not here: what a check accepts (in its file), how
far the figures of a measurement vary (its TOLERANCE), and what runs on nodes (foundation/stats.py, guard/node).
"""

from math import log

# Peers. Source: https://www.itl.nist.gov/div898/handbook/eda/section3/eda35h.htm

MIN_FOR_MAJORITY = 4
"""With this many peers or hosts there is a majority even if one is far off; fewer hosts are not compared. Source: one of three that is off leaves no majority of three quarters."""
PEER_DEVIATIONS = 3.5
"""A figure is below target if it is this many robust deviations worse than its peers, or than its baseline. Source: Iglewicz and Hoaglin 1993, for the modified z-score."""
FEW_PEER_TOLERANCES = 3.0
"""One of two or three figures is below target if it is this many tolerances worse than the best. Source: judgement; they have no majority."""
HOST_DEVIATIONS = 6.0
"""A host's number is an outlier this many robust deviations from the median. Source: one of 10^9 in a normal distribution; NIST proposes 3.5 for single data sets, an audit has hundreds."""
MAX_OUTLIER_SHARE = 0.25
"""If more are outside, they are a second kind, and none is an outlier. A healthy rank is among this share of the latest as often. Source: three of four are a majority."""

# Figures of verify: disturbed, repeated. Source: judgement

MAX_OTHERS_SHARE = 0.05
"""A figure is disturbed if others used more of the measured resource. Source: the narrowest tolerance of a measurement."""
MIN_OTHERS_SECONDS = 0.2
"""Others' CPU seconds below which a figure is not disturbed. Source: the kernel counts in ticks of 10 ms."""
COMPARED_LEVEL = 0.01
"""The chance that a figure before and after is called changed and is not. Source: convention, for each figure."""
MIN_COMPARED_RUNS = 5
"""Runs on each side of a comparison. Source: with four, no result reaches that level (1 of 35 orders)."""

# Slow parts of a fleet. Source: simulation, benchmarks/find_slow.py

SMALLEST_LOSS = 0.05
"""The smallest loss that is looked for."""
QUICK = -SMALLEST_LOSS / 2
"""A figure (logarithm of the share of its level) at or above this speaks for both ends."""
DEEP_FALL = -0.15
"""A fall beyond this is deep: healthy runs have it rarely."""
USUAL_NOISE, MIN_NOISE, NOISE_WEIGHT = 0.02, 0.007, 8
"""The noise that is assumed, with the weight of that many figures, and the least that is believed."""
LOW_DEVIATIONS = 2.5
"""A run is low, or the rest of the fleet still short, this many times the noise below its level, and by half of the smallest loss."""
FALL_CHANCE, DEEP_FALL_CHANCE = 0.05, 0.01
"""The chances that a healthy run falls: at all, and deep, before the fleet has shown its own."""
BROKEN_CHANCE = 1e-3
"""The chance that a healthy part hangs, fails or gives wrong data in a run."""
MAX_WELL_ODDS = -12.0
"""The most (logarithm of odds) that one run says for "well"."""
FAR_BELOW = 5.0
"""A figure this many times the noise below the loss of its part fell for another reason: it says nothing."""
LEVEL_DEVIATIONS = 4.5
"""Standard deviations of one run that the middle of runs may be off, over the root of their number less one."""
SLOW_PART_CHANCE = 1e-4
"""The chance of a wrong name in a whole fleet that the odds for a name allow."""
SHALLOW_ODDS = log(3)
"""Further odds that name a part whose loss is not deep: theirs rest on the fleet's noise, which few figures show."""
CLEAR_ODDS = -3.0
"""At or below these odds, an end is proven good."""
PROVEN_ODDS = 2 * CLEAR_ODDS
"""A path is blamed for a small loss only if the odds of its ends are at or below this."""
DOUBT_ODDS = -1.0
"""A node or uplink whose odds are above this is tried again."""
ALONE_ODDS = 6.0
"""Odds at which a part loses as much by itself as with others, or (negative) is well alone."""
MIN_ODDS_GAIN = 0.3
"""A further round that would move the odds by less decides nothing."""
WORST_RAIL_NOISE = 1.25
"""Factor for the noise of the worst rail: the least of eight has a tail."""
FEW_DOMAINS = 4
"""With no more domains, runs across have no level of their own: one slow domain would be in most of them."""
MIN_LEAF_NODES = 4
"""With fewer hosts in a leaf, its uplink is not judged."""
SHORT_UPLINKS = 0.05
"""Runs under load this much below near ones: uplinks are oversubscribed, and load hides a slow link."""
FLEET_DRIFT = 0.02
"""A round whose witnesses moved by more than this is read against them."""
WITNESS_CHANCE = 0.01
"""A drift is sure only if the chance that these witnesses fell one by one is below this."""
BIMODAL_SHARE = 0.05
"""Figures are called bimodal from this share of runs on that fell for no part's fault."""
STRAGGLER_CHANCE = 1e-3
"""The chance that a part of a healthy fleet is named by what it computes or copies alone, over all parts and metrics."""
MIN_STRAGGLER_LOSS, MIN_STRAGGLER_SPREAD = 0.03, 0.005
"""The loss from which such a part matters, and the least spread of healthy ones. Source: judgement; GPUs of one model differ."""
MIN_ALIKE = 8
"""With fewer parts of a kind, one that is off hides among the others: they are compared with the shipped figure. Source: judgement."""

# Late ranks of jobs. Source: simulation, benchmarks/late_ranks.py

LATE_RANK_CHANCE = 0.001
"""The chance that a rank is named in all jobs of a call, if none is slow."""
MIN_LATENESS = 0.03
"""A rank is late from this share of the time between two collectives on, and in a part of the run from half of it."""
MIN_RANK_SPREAD = 0.003
"""The least spread of healthy ranks: few ranks cannot show how much GPUs differ."""
MIN_RANK_FREEDOM = 5
"""Degrees of freedom of the other ranks from which one can be late."""
LATENESS_BLOCKS = 20
"""A run is cut into as many parts, and a late rank is late in nearly all."""
MIN_CALLS, MIN_RANKS = 100, 4
"""Collectives of one kind in common, and ranks of a communicator, from which ranks are compared."""
UNDECIDED_SHARE = 0.5
"""Late ranks up to this share are undecided: one more, and the others would be early."""
CLEARED_SHARE = 0.5
"""The same place on another host speaks against the program if it is at most this share as late there."""
ALWAYS_LAST, FAR_LATER = 0.9, 3
"""Of few ranks, one is pointed at if it is the last in this share of its collectives, and this many times later than the next one. Source: judgement, after four H200s."""

# Trends of a history. Source: simulation, benchmarks/simulated_year.py

TREND_FACTOR, MIN_GROWTH, STEADY = 4, 10, 5
"""Too much growth of a counter: over this factor times the usual (both with STEADY added, so that small numbers weigh less), and at least MIN_GROWTH."""
TREND_DEGREES = 5
"""Too much heat, in °C above the usual."""
RECENT_DAYS, TREND_DAYS = 5, 3
"""Too much on TREND_DAYS of the last RECENT_DAYS is a trend."""
PAST = range(4, 29)
"""The days ago that say what is usual: the last ones may be ill already."""
ALIKE_GROWTH = 0.8
"""A peer that grew by this share of a part's growth grew as much: a job that begins moves all of them nearly alike."""
MIN_PAST_DAYS, MIN_TREND_PEERS = 3, 100
"""With fewer days a part has no past; without one and with fewer peers it is not judged."""
MAX_GAP_DAYS = 2
"""Two looks give the growth of a day if they are at most this far apart. Source: judgement."""
WARM_DEGREES = 50
"""°C that half of a host's GPUs have at least, where their differences count. Source: judgement; idle ones hide heat."""

# Tuning. Source: simulation, benchmarks/tuning_errors.py

LOOKS = ((6, 0.00109), (10, 0.00391))
"""Pairs of finalist and default, and the level of the tests there. The first look decides only what is clear. Source: together 0.5 %; the first is the least that six a side reach (1 of 924 orders)."""
PAIRED_FROM = 8
"""From this many on, pairs are also compared pair by pair: what slows a pair, such as another clock, slows both. Source: fewer cannot reach the level."""
MAX_PAIRS, TUNE_LEVEL = LOOKS[-1][0], sum(level for _, level in LOOKS)
"""Pairs of a whole confirmation, and the chance that a setting without effect is accepted, for each finalist: no more than both looks together."""
MORE_PAIRS, MIN_MORE_PAIRS = 10, 4
"""Further pairs, as many as time is left for, of those cases alone that refuse a gain and may do so by chance."""
MIN_GAIN, MAX_LOSS = 0.01, 0.01
"""The share that the objective must gain, and that another case may lose. Source: judgement; less is not worth a change."""
LOSS_LEVEL = 0.05
"""A loss counts if noise causes it this rarely. Source: convention; not adjusted, so that harm is rather seen than not."""
TOO_NOISY = -0.05
"""A case that looks worse does not pass either if noise could hide another such loss (the lower end of its interval)."""
RESOLVED = 0.02
"""A case whose interval reaches further to each side is named with its resolution: a loss of that size may be unseen."""
EQUAL_GAIN = 0.005
"""Settings whose gains differ by less, or by less than a standard error, are equally good: the simplest is used."""
SURE_ERRORS = 3.0
"""Standard errors beyond which a setting surely cannot win, or surely does harm."""
MIN_GAINS_FOR_NOISE = 12
"""Gains from which a case's noise is known: of fewer, one can be far off by chance."""
MIN_SPREAD_FREEDOM = 3
"""Degrees of freedom from which the spread of blocks is known."""
SHARED_DEFAULT = 2
"""Settings of a block share its default, so that their spreads are alike: this many times fewer degrees of freedom."""
GPU_TRIAL_NOISE = 0.02
"""The share by which noise may slow one trial of clocks or power: within it, the confirmation decides. Source: judgement."""

# Episodes of hosts and parts. Source: simulation, benchmarks/lemons.py

EPISODE_DAYS = 90
"""Days in which episodes are counted. Source: judgement; a lemon shows within a quarter."""
MAX_CHANCE_OF_LEMON = 0.005
"""The chance that a fleet of hosts that are alike has one that is named, over all its hosts (Holm)."""
MIN_EPISODES = 4
"""Fewer episodes name no host, however quiet the others are. Source: judgement; after three a person has looked anyway."""
MAX_CHANCE_OF_COMMON_CAUSE = 0.01
"""Episodes of several hosts within an hour have a common cause if chance brings that number of them together this rarely."""
MIN_REBOOTS = 2
"""A fault that has to be repaired and was seen again after this many reboots is hardware. Source: judgement; one reboot may find the same wrong state."""
