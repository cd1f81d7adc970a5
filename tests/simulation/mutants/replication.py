"""Safeguards of replication: what counts as committed, and what may be cut or appended."""

from collections.abc import Iterable

from kquorum.raft import log_index
from kquorum.raft.follower import fetching
from kquorum.raft.leader import fetch_handler, majority
from kquorum.raft.leader.majority import majority_offset
from kquorum.raft.log_index import LogIndex
from kquorum.raft.messages import UNKNOWN_OFFSET, FetchResponse
from kquorum.raft.replica import Replica
from kquorum.raft.roles import Follower, Leader
from kquorum.wire.log_batch import LogBatch, OffsetAndEpoch
from tests.simulation.mutants.registry import Patch, everywhere, mutant
from tests.simulation.options import Options


def _has_many_voters(options: Options) -> bool:
    return options.voters >= 4


def _has_many_observers(options: Options) -> bool:
    return options.observers >= 2


def _reached(replica: Replica, leader: Leader) -> list[int]:
    return [majority.voter_end_offset(replica, leader, voter) for voter in replica.voters]


@mutant(schedule="figure_8")
def commit_older_epochs_by_counting() -> Patch:
    """Records of older epochs are committed only along with one of the leader's own (Raft, figure 8)."""

    def eager(replica: Replica, leader: Leader) -> None:
        replica.high_watermark = max(replica.high_watermark, majority_offset(_reached(replica, leader)))

    return everywhere(majority.maybe_advance_high_watermark, eager)


@mutant(schedule="figure_8")
def commit_before_the_epoch_has_begun() -> Patch:
    """The first record of the epoch itself must be on a majority, not only all that stands before it."""

    def early(replica: Replica, leader: Leader) -> None:
        reached = majority_offset(_reached(replica, leader))
        if reached >= leader.epoch_start_offset:
            replica.high_watermark = max(replica.high_watermark, reached)

    return everywhere(majority.maybe_advance_high_watermark, early)


@mutant(schedule="read_before_the_first_commit")
def new_leader_tells_what_it_knew_as_a_follower() -> Patch:
    """A leader tells no high watermark before a record of its own epoch is committed."""

    def forward(replica: Replica) -> int:
        return replica.high_watermark

    return everywhere(fetch_handler.told_high_watermark, forward)


@mutant(schedule="two_of_five", worlds=_has_many_voters)
def minority_commits() -> Patch:
    """A record is committed when a majority has it, not when another replica has."""

    def second_best(end_offsets: Iterable[int]) -> int:
        descending = sorted(end_offsets, reverse=True)
        return descending[min(1, len(descending) - 1)]

    return everywhere(majority_offset, second_best)


@mutant(schedule="observers_do_not_count", worlds=_has_many_observers)
def observers_count() -> Patch:
    """Only voters count for the majority."""

    def lax(replica: Replica, leader: Leader) -> None:
        offsets = _reached(replica, leader)
        offsets += [
            known.end_offset for key, known in leader.progress.items() if not replica.voters.contains(key)
        ]
        reached = min(majority_offset(offsets), replica.log.log_end_offset)
        if reached > leader.epoch_start_offset:
            replica.high_watermark = max(replica.high_watermark, reached)

    return everywhere(majority.maybe_advance_high_watermark, lax)


@mutant(schedule="divergent_tail")
def count_any_fetch_position() -> Patch:
    """A fetch offset counts only if the follower's log is the leader's up to there."""

    def never(*_: object) -> None:
        return None

    return everywhere(log_index.diverging_point, never)


@mutant(schedule="divergent_tail")
def divergence_by_offset_alone() -> Patch:
    """That logs are the same up to an offset is known by the epoch before it, not by the offset."""

    def by_length(log: LogIndex, fetch_offset: int, last_fetched_epoch: int) -> OffsetAndEpoch | None:
        if fetch_offset <= log.log_end_offset:
            return None
        return OffsetAndEpoch(log.log_end_offset, log.last_epoch)

    return everywhere(log_index.diverging_point, by_length)


@mutant(schedule="tail_of_an_unknown_epoch")
def cut_no_further_than_told() -> Patch:
    """A follower that lacks the epoch named in the answer cuts everything after the epoch before it."""

    def literal(log: LogIndex, diverging: OffsetAndEpoch) -> int:
        return min(diverging.offset, log.log_end_offset)

    return everywhere(log_index.truncation_target, literal)


@mutant(schedule="voter_that_was_caught_up_once")
def high_watermark_falls() -> Patch:
    """The high watermark never falls, whatever voters acknowledge later."""

    def honest(replica: Replica, leader: Leader) -> None:
        reached = majority_offset(_reached(replica, leader))
        if reached > leader.epoch_start_offset:
            replica.high_watermark = reached

    return everywhere(majority.maybe_advance_high_watermark, honest)


@mutant(schedule="far_behind")
def high_watermark_beyond_the_log() -> Patch:
    """A follower commits no more than it has."""

    def greedy(replica: Replica, leader_high_watermark: int) -> None:
        if leader_high_watermark != UNKNOWN_OFFSET:
            replica.high_watermark = max(replica.high_watermark, leader_high_watermark)

    return everywhere(fetching._maybe_advance_high_watermark, greedy)


@mutant(schedule="divergent_tail")
def high_watermark_before_the_cut() -> Patch:
    """A follower cuts its divergent tail before it takes its leader's high watermark (KAFKA-14704)."""
    handle = fetching.handle_fetch_response

    def hasty(replica: Replica, now_ms: int, source_id: int, response: FetchResponse) -> None:
        is_from_leader = isinstance(replica.role, Follower) and source_id == replica.leader_id
        if is_from_leader and response.diverging is not None:
            fetching._maybe_advance_high_watermark(replica, response.high_watermark)
        handle(replica, now_ms, source_id, response)

    return everywhere(fetching.handle_fetch_response, hasty)


@mutant(schedule="divergent_tail")
def skip_truncation() -> Patch:
    """A follower that learns that it diverged cuts its log."""

    def keep(replica: Replica, diverging: OffsetAndEpoch) -> None:
        return None

    return everywhere(fetching._truncate, keep)


@mutant(schedule="leader_that_lost_data")
def committed_records_are_cut_in_silence() -> Patch:
    """A follower that is asked to cut what is committed stops instead."""

    def obedient(replica: Replica, diverging: OffsetAndEpoch) -> None:
        end_offset = log_index.truncation_target(replica.log, diverging)
        replica.truncate_to(end_offset)
        replica.high_watermark = min(replica.high_watermark, end_offset)

    return everywhere(fetching._truncate, obedient)


@mutant(schedule="reply_that_repeats_itself")
def batches_are_taken_as_they_come() -> Patch:
    """Only batches that continue the log, in offset and epoch, are appended."""

    def trusting(replica: Replica, batches: tuple[LogBatch, ...]) -> list[LogBatch]:
        return list(batches)

    return everywhere(fetching._appendable, trusting)
