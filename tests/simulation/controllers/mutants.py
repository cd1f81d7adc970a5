"""Controllers with one safeguard taken out, which these worlds must notice."""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from kquorum.metadata.controller.brokers.liveness import BrokerLiveness
from kquorum.metadata.controller.controller import Controller, DeferredReplies
from kquorum.metadata.controller.partitions.batched_update import BatchedPartitionUpdate
from kquorum.metadata.controller.timeline import Timeline
from kquorum.metadata.state_hash import image_hash
from kquorum.raft.adapters.delivery import CommitFeed
from tests.simulation.run import SimulationFailed, simulate


def _keeps_uncommitted_decisions() -> Any:
    """Having lost its leadership, a controller still believes in what it had proposed."""
    return patch.object(Timeline, "revert", lambda _self: None)


def _answers_before_commit() -> Any:
    """ "Done" is said when the record is in the leader's log."""
    return patch.object(
        Controller, "_answer_at", lambda _self, _offset, _request, reply, values: reply(values)
    )


def _answers_done_when_deposed() -> Any:
    """A request that waits when leadership is lost gets the answer that it would have got."""

    def fail(self: Any, _error: object) -> None:
        waiting, self._waiting = self._waiting, type(self._waiting)()
        for each in waiting:
            each.reply(each.values)

    return patch.object(DeferredReplies, "fail", fail)


def _gives_no_session_at_failover() -> Any:
    """A controller that begins takes brokers for dead that it has not heard of yet."""
    original = BrokerLiveness.__init__

    def begin(self: BrokerLiveness, now_ms: int, session_timeout_ms: int, brokers: Any) -> None:
        original(self, now_ms - 2 * session_timeout_ms, session_timeout_ms, brokers)

    return patch.object(BrokerLiveness, "__init__", begin)


def _decides_before_it_has_replayed() -> Any:
    """ "You lead" comes before what was committed under those who led before."""
    return patch.object(CommitFeed, "is_behind", property(lambda _self: False))


def _fences_without_moving_leaders() -> Any:
    """A broker that is taken for dead goes on leading: its fence is written without its partitions' changes."""
    stack = ExitStack()
    module = sys.modules[Controller.__module__]
    stack.enter_context(patch.object(module, "whole_run", lambda _context, _movement: None))
    stack.enter_context(patch.object(BatchedPartitionUpdate, "is_done", property(lambda _self: True)))
    return stack


def _hash_keeps_deleted_topics() -> Any:
    """The state's hash forgets to take off what was deleted."""
    original: Any = vars(image_hash)["hashes_of_topics_change"]

    def changes(delta: Any, old: Any, new: Any, hash_of: Any) -> Iterator[int]:
        yield from original(delta, old, new, hash_of)
        for topic_id in delta.deleted_topic_ids:
            yield hash_of("topic", topic_id, old.by_id[topic_id].name)

    return patch.object(image_hash, "hashes_of_topics_change", changes)


MUTANTS: Mapping[str, Callable[[], Any]] = {
    "keeps_uncommitted_decisions": _keeps_uncommitted_decisions,
    "answers_before_commit": _answers_before_commit,
    "answers_done_when_deposed": _answers_done_when_deposed,
    "gives_no_session_at_failover": _gives_no_session_at_failover,
    "decides_before_it_has_replayed": _decides_before_it_has_replayed,
    "fences_without_moving_leaders": _fences_without_moving_leaders,
    "hash_keeps_deleted_topics": _hash_keeps_deleted_topics,
}


@contextmanager
def mutated(name: str) -> Iterator[None]:
    with MUTANTS[name]():
        yield


def catch(name: str, first: int, runs: int) -> SimulationFailed | None:
    """The first failure of the mutant among so many worlds; None if it survives them all."""
    for seed in range(first, first + runs):
        with mutated(name):
            try:
                simulate(seed, profile="controllers")
            except SimulationFailed as failure:
                return failure
    return None
