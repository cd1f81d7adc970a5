"""Which bugs there are, how each gets into a node, and where it ought to be found."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.jepsen.mutants import patches
from tests.simulation.controllers.mutants import MUTANTS as OF_CONTROLLERS
from tests.simulation.mutants.catalogue import MUTANTS as OF_THE_CORE


@dataclass(frozen=True, slots=True)
class Planted:
    """`safeguard` is what the bug takes away; `hunt` is the run which has to find it, as the command line has it."""

    name: str
    safeguard: str
    apply: Callable[[], Any]
    hunt: tuple[str, ...]


def _hunt(workload: str, nemesis: str, *more: str) -> tuple[str, ...]:
    return ("--workload", workload, "--nemesis", nemesis, *more)


_QUICK = ("--quiet", "2", "--fault", "5")
_CUT_LOGS = ("--config", "metadata.max.retention.bytes=200000")
_HUNTS: dict[str, tuple[str, ...]] = {
    # Acknowledged before commit.
    "answers_before_commit": _hunt("topics-set,log-order", "halves", *_QUICK),
    # One follower has to lack what the other one has: else no election can lose it.
    "leader_counts_unflushed": _hunt("topics-set,log-order", "slow-fsync-leader+halves>power-cut", *_QUICK),
    "acknowledge_before_flush": _hunt("topics-set,log-order", "slow-fsync>power-cut", *_QUICK),
    "minority_commits": _hunt("log-order", "halves,isolate-leader", *_QUICK, "--nodes", "5"),
    # Clients reach the leader itself: what they ask of brokers does not reach one that is cut off.
    "answers_done_when_deposed": _hunt("leader-lease", "isolate-leader", *_QUICK),
    # Elections.
    "votes_not_flushed": _hunt("leader-lease", "power-cut", "--quiet", "1", "--fault", "1"),
    "vote_for_anybody": _hunt("log-order", "halves>kill-leader", *_QUICK),
    "check_quorum_never_resigns": _hunt("leader-lease", "isolate-leader", "--quiet", "3", "--fault", "20"),
    "lost_state_is_ignored": _hunt("topics-set,log-order", "wiped-disk,kill-leader", *_QUICK),
    # Reads.
    "read_without_asking": _hunt("register", "isolate-leader", *_QUICK),
    # Voters.
    "two_changes_at_once": _hunt("membership", "slow-links", *_QUICK),
    # Logs.
    "skip_truncation": _hunt("log-order", "isolate-leader", *_QUICK),
    "divergence_by_offset_alone": _hunt("log-order", "isolate-leader", *_QUICK),
    "epoch_of_the_snapshot_is_ignored": _hunt("log-order", "wiped-disk,kill-leader", *_QUICK, *_CUT_LOGS),
    "damage_is_ignored": _hunt("topics-set,log-order", "bit-flip,kill-leader", *_QUICK),
    # The controller's decisions.
    "keeps_uncommitted_decisions": _hunt("topics-set", "isolate-leader", *_QUICK),
    "fences_without_moving_leaders": _hunt("topics-set", "kill-one", "--quiet", "2", "--fault", "15"),
    "broker_epoch_reused": _hunt("leader-lease", "kill-one", *_QUICK),
    "config_update_lost": _hunt("config-set", "kill-leader", *_QUICK),
    "partition_epoch_unchecked": _hunt("register", "kill-leader", *_QUICK),
    "leader_epoch_unchecked": _hunt("register", "kill-one", *_QUICK),
    "configs_outlive_their_topic": _hunt("topics-set", "kill-one", *_QUICK),
}
_OURS: dict[str, Callable[[], Any]] = {
    "votes_not_flushed": patches.votes_not_flushed,
    "broker_epoch_reused": patches.broker_epoch_reused,
    "config_update_lost": patches.config_update_lost,
    "partition_epoch_unchecked": patches.partition_epoch_unchecked,
    "leader_epoch_unchecked": patches.leader_epoch_unchecked,
    "configs_outlive_their_topic": patches.configs_outlive_their_topic,
}


def _planted(name: str) -> Planted:
    if name in _OURS:
        return Planted(name, _words(_OURS[name].__doc__), _OURS[name], _HUNTS[name])
    if name in OF_THE_CORE:
        mutant = OF_THE_CORE[name]
        return Planted(name, mutant.safeguard, mutant.apply, _HUNTS[name])
    apply = OF_CONTROLLERS[name]
    return Planted(name, _words(apply.__doc__), apply, _HUNTS[name])


def _words(text: str | None) -> str:
    return " ".join((text or "").split())


PLANTED: dict[str, Planted] = {name: _planted(name) for name in _HUNTS}


_KEPT: list[Any] = []


def plant(name: str) -> None:
    """For the rest of this process."""
    # Some patches are generators: were theirs collected, it would take the patch back.
    _KEPT.append(PLANTED[name].apply())
    _KEPT[-1].__enter__()
