"""Replication with one safeguard taken out, which the worlds of partitions must notice."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from kquorum.broker.log import producer_state
from kquorum.broker.log.partition_log import AppendOrigin
from kquorum.broker.log.producer_state import PreparedAppend, ProducerStates
from kquorum.broker.replica import fetcher as fetching
from kquorum.broker.replica import partition as partitions
from kquorum.broker.replica.alter_partitions import AlterPartitions
from kquorum.broker.replica.fetch_session import FetchSession, SessionRequest
from kquorum.broker.replica.fetcher import Fetcher
from kquorum.broker.replica.isr import FollowerProgress, IsrState
from kquorum.broker.replica.partition import Partition, Wake
from kquorum.broker.replica.replica_manager import ReplicaManager
from kquorum.wire.messages.error_codes import ErrorCode
from tests.simulation.partitions.world import PartitionsFailed, simulate

MUTANTS: dict[str, Callable[[], Any]] = {}


def mutant(apply: Callable[[], Any]) -> Callable[[], Any]:
    """Enter a patch under its function's name; the docstring is the safeguard that is gone."""
    assert apply.__doc__
    MUTANTS[apply.__name__] = apply
    return apply


# The high watermark


@mutant
def acknowledges_before_the_followers() -> Any:
    """acks=all is answered when the high watermark has passed the records, not when the leader has them."""
    return patch.object(Partition, "acknowledgement", lambda _self, _offset: ErrorCode.none)


@mutant
def commits_what_it_has_alone() -> Any:
    """The high watermark is the least end of the in-sync replicas, not the end of the leader's log."""

    def advance(self: Any, _now_ms: int) -> bool:
        if not self.is_leader or self.is_under_min_isr or self.log.log_end_offset == self.log.high_watermark:
            return False
        self.log.update_high_watermark(self.log.log_end_offset)
        self._outbox.wake(self.topic_partition, Wake.HIGH_WATERMARK)
        return True

    return patch.object(Partition, "_maybe_advance_high_watermark", advance)


@mutant
def commits_over_the_committed_isr() -> Any:
    """A replica that is about to join counts before the controller's answer, for the controller may have agreed."""
    return patch.object(IsrState, "maximal", property(lambda self: self.committed))


@mutant
def shrinks_before_the_controller_agrees() -> Any:
    """A replica that is about to leave counts until the controller has agreed, for it may be elected."""
    return patch.object(
        IsrState,
        "maximal",
        property(lambda self: self.committed if self.pending is None else self.pending.isr),
    )


@mutant
def commits_below_min_isr() -> Any:
    """The high watermark stands still below min.insync.replicas (KIP-966)."""
    return patch.object(Partition, "is_under_min_isr", property(lambda _self: False))


@mutant
def commits_all_when_elected() -> Any:
    """A new leader keeps the high watermark that it had as a follower."""
    original = Partition.become_leader

    def lead(self: Any, now_ms: int, registration: Any) -> bool:
        is_new = original(self, now_ms, registration)
        if is_new:
            self.log.update_high_watermark(self.log.log_end_offset)
        return is_new

    return patch.object(Partition, "become_leader", lead)


@mutant
def tells_the_latest_offset_before_its_epoch_is_committed() -> Any:
    """A new leader has no latest offset before its watermark has reached its epoch (KIP-207)."""
    return patch.object(Partition, "is_below_epoch_start", property(lambda _self: False))


# What the leader knows of its followers


@mutant
def counts_fetches_that_diverge() -> Any:
    """A fetch offset counts only if the follower's log is the leader's up to there."""
    original = Partition.read_as_follower

    def read(self: Any, now_ms: int, replica_id: int, offset: int, **arguments: Any) -> Any:
        found = original(self, now_ms, replica_id, offset, **arguments)
        if found.diverging is not None:
            self.follower_fetched(now_ms, replica_id, offset, broker_epoch=arguments["broker_epoch"])
        return found

    return patch.object(Partition, "read_as_follower", read)


@mutant
def answers_fetches_of_other_epochs() -> Any:
    """A fetch in another leader epoch than the leader's is refused."""
    return patch.object(Partition, "check_leader_epoch", lambda _self, _asked: None)


@mutant
def keeps_progress_over_epochs() -> Any:
    """What a leader knew of its followers under an earlier leadership counts no longer."""
    stack = ExitStack()
    original = Partition.become_follower

    def follow(self: Any, registration: Any) -> bool:
        followers = dict(self.followers)
        is_new_epoch = original(self, registration)
        self.followers = followers
        return is_new_epoch

    stack.enter_context(patch.object(Partition, "become_follower", follow))
    stack.enter_context(patch.object(FollowerProgress, "begin_epoch", lambda _self, _now_ms, **_: None))
    return stack


@mutant
def takes_fetches_from_before_a_restart() -> Any:
    """A fetch with an older broker epoch than the registered one is refused, and its sender may not join (KIP-903)."""
    stack = ExitStack()
    original = Partition.follower_fetched

    def fetched(self: Any, now_ms: int, replica_id: int, offset: int, **arguments: Any) -> None:
        arguments["broker_epoch"] = -1
        original(self, now_ms, replica_id, offset, **arguments)

    stack.enter_context(patch.object(Partition, "follower_fetched", fetched))
    return stack


# The ISR


@mutant
def expands_without_catching_up() -> Any:
    """A follower joins the ISR when it has all that is committed."""

    def expand(self: Any, replica_id: int, progress: FollowerProgress) -> None:
        state = self.isr_state
        if (
            not state.is_in_flight
            and replica_id not in state.committed
            and self._is_eligible(replica_id, progress)
        ):
            self._propose(state.committed | {replica_id})

    return patch.object(Partition, "_maybe_expand_isr", expand)


@mutant
def expands_before_the_leaders_epoch() -> Any:
    """A follower joins the ISR when it has reached the leader's epoch: the watermark alone may be an old one."""
    original = Partition._maybe_expand_isr

    def expand(self: Any, replica_id: int, progress: FollowerProgress) -> None:
        if self.epoch_start_offset is not None:
            start, self.epoch_start_offset = self.epoch_start_offset, 0
            original(self, replica_id, progress)
            self.epoch_start_offset = start

    return patch.object(Partition, "_maybe_expand_isr", expand)


@mutant
def never_shrinks() -> Any:
    """A follower that lags leaves the ISR."""
    return patch.object(Partition, "maybe_shrink_isr", lambda _self, _now_ms: None)


@mutant
def rolls_back_what_may_have_been_made() -> Any:
    """A change that the controller refused for old metadata stays pending: it may have been made."""
    stack = ExitStack()
    stack.enter_context(
        patch.object(partitions, "_ROLLED_BACK", partitions._ROLLED_BACK | partitions._METADATA_ARE_OLD)
    )
    stack.enter_context(patch.object(partitions, "_METADATA_ARE_OLD", frozenset()))
    return stack


@mutant
def rolls_back_when_no_answer_comes() -> Any:
    """A change whose answer was lost is sent again: it may have been made."""
    original = AlterPartitions.handle_failure

    def fail(self: Any, now_ms: int) -> None:
        for key in self._in_flight:
            change = self._waiting.pop(key)
            leader = self._leader_of(change)
            if leader is not None:
                leader.isr_change_refused(change, ErrorCode.operation_not_attempted)
        original(self, now_ms)

    return patch.object(AlterPartitions, "handle_failure", fail)


@mutant
def forgets_a_change_whose_answer_is_lost() -> Any:
    """A change whose answer was lost is sent again: no other can be made before."""
    original = AlterPartitions.handle_failure

    def fail(self: Any, now_ms: int) -> None:
        for key in self._in_flight:
            del self._waiting[key]
        original(self, now_ms)

    return patch.object(AlterPartitions, "handle_failure", fail)


@mutant
def believes_late_answers() -> Any:
    """An answer of the controller is taken only for the change that is pending."""

    def made(self: Any, now_ms: int, _change: Any, answer: Any) -> bool:
        self.isr_state = IsrState(answer.isr)
        self.partition_epoch = max(self.partition_epoch, answer.partition_epoch)
        self._maybe_advance_high_watermark(now_ms)
        return True

    return patch.object(Partition, "isr_change_made", made)


# The follower's log


@mutant
def never_truncates() -> Any:
    """A follower cuts what its leader does not have."""
    return patch.object(Partition, "truncate_to", lambda _self, _offset: None)


@mutant
def truncates_to_the_high_watermark() -> Any:
    """A follower cuts its log where its epochs part from the leader's, not at its high watermark (KIP-101)."""
    original = fetching._Followed.begin

    def begin(self: Any, *, cuts_by_fetch: bool) -> None:
        self.partition.truncate_to(self.partition.log.high_watermark)
        self.offset = self.partition.log.log_end_offset
        original(self, cuts_by_fetch=cuts_by_fetch)

    return patch.object(fetching._Followed, "begin", begin)


@mutant
def truncates_no_further_than_told() -> Any:
    """A follower that lacks the leader's epoch cuts all that came after the epoch before it (KIP-279)."""
    return patch.object(
        fetching,
        "truncation_point",
        lambda partition, _offset, leaders: (min(leaders.end_offset, partition.log.log_end_offset), True),
    )


@mutant
def says_no_last_epoch() -> Any:
    """A follower tells the epoch of its last record, by which the leader sees where their logs diverge (KIP-595)."""
    original = fetching._as_asked
    return patch.object(
        fetching, "_as_asked", lambda followed, size: replace(original(followed, size), last_fetched_epoch=-1)
    )


@mutant
def takes_the_watermark_of_an_answer_that_diverges() -> Any:
    """A follower cuts its log before it takes a watermark over (KAFKA-14704)."""
    original = Fetcher._handle_partition

    def handle(self: Any, now_ms: int, key: Any, data: Any) -> int:
        followed = self._followed.get(key)
        if followed is not None and data.diverging_epoch.end_offset >= 0:
            followed.partition.follow_watermarks(data.high_watermark, -1)
        return original(self, now_ms, key, data)

    return patch.object(Fetcher, "_handle_partition", handle)


@mutant
def keeps_its_fetcher_under_another_leader() -> Any:
    """A new leader epoch starts another fetch."""

    def fetch(self: Any, partition: Any) -> None:
        if not any(partition.topic_partition in each.fetcher for each in self.fetchers.values()):
            original(self, partition)

    original = ReplicaManager._fetch
    stack = ExitStack()
    stack.enter_context(patch.object(ReplicaManager, "_fetch", fetch))
    stack.enter_context(patch.object(ReplicaManager, "_stop_fetching", lambda _self, _key: None))
    return stack


@mutant
def names_no_changes_in_its_session() -> Any:
    """A session's request names the partitions whose fetch offset moved."""
    original = FetchSession.request

    def request(self: Any, changed: Any, gone: Any) -> SessionRequest:
        known = dict(self.partitions)
        made = original(self, changed, gone)
        return replace(made, named={key: each for key, each in made.named.items() if key not in known})

    return patch.object(FetchSession, "request", request)


# Idempotent producers


@mutant
def takes_any_sequence() -> Any:
    """A batch whose sequence does not follow that of the producer's last batch is refused (KIP-98)."""
    return patch.object(producer_state._Append, "_check_sequence", lambda *_: None)


@mutant
def appends_a_batch_again() -> Any:
    """A batch that a producer sends again is answered with its first offset, and not appended (KIP-98)."""
    return patch.object(ProducerStates, "_duplicate_of", lambda _self, _header: None)


@mutant
def acknowledges_a_repeat_at_once() -> Any:
    """A batch that is sent again is acknowledged when its first copy is committed, not when it is known."""
    original = Partition.append

    def append(self: Any, now_ms: int, records: Any, **arguments: Any) -> Any:
        appended = original(self, now_ms, records, **arguments)
        return replace(appended, required_offset=0) if appended.batches.duplicate else appended

    return patch.object(Partition, "append", append)


@mutant
def forgets_the_producers_of_a_follower() -> Any:
    """A follower keeps the producers of what it replicates, for it may lead next."""
    original = ProducerStates.prepare

    def prepare(self: Any, headers: Any, records: Any, *, origin: AppendOrigin, **arguments: Any) -> Any:
        if origin is AppendOrigin.REPLICATION:
            return PreparedAppend()
        return original(self, headers, records, origin=origin, **arguments)

    return patch.object(ProducerStates, "prepare", prepare)


@contextmanager
def mutated(name: str) -> Iterator[None]:
    with MUTANTS[name]():
        yield


def catch(name: str, first: int, runs: int) -> PartitionsFailed | None:
    """The first failure of the mutant among so many worlds; None if it survives them all."""
    for seed in range(first, first + runs):
        with mutated(name):
            try:
                simulate(seed)
            except PartitionsFailed as failure:
                return failure
    return None


CAUGHT_IN: Mapping[str, int] = {
    "acknowledges_a_repeat_at_once": 0,
    "acknowledges_before_the_followers": 0,
    "appends_a_batch_again": 0,
    "commits_all_when_elected": 0,
    "commits_below_min_isr": 0,
    "commits_over_the_committed_isr": 1,
    "commits_what_it_has_alone": 0,
    "counts_fetches_that_diverge": 3,
    "expands_before_the_leaders_epoch": 21,
    "expands_without_catching_up": 1,
    "forgets_a_change_whose_answer_is_lost": 108,
    "forgets_the_producers_of_a_follower": 1,
    "keeps_its_fetcher_under_another_leader": 1,
    "names_no_changes_in_its_session": 0,
    "never_shrinks": 147,
    "never_truncates": 0,
    "says_no_last_epoch": 0,
    "shrinks_before_the_controller_agrees": 0,
    "takes_any_sequence": 115,
    "takes_the_watermark_of_an_answer_that_diverges": 2,
    "tells_the_latest_offset_before_its_epoch_is_committed": 0,
    "truncates_no_further_than_told": 40,
    "truncates_to_the_high_watermark": 0,
}
"""In which world each is caught, so that `make test` need not look for one. The others need a coincidence that worlds
seldom have; unit tests catch them."""
