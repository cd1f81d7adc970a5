"""Where two logs agree, and how far a majority has come: pure functions."""

from collections.abc import Iterable

from raft.log_index import LogIndex
from wire.log_batch import OffsetAndEpoch


def diverging_point(log: LogIndex, fetch_offset: int, last_fetched_epoch: int) -> OffsetAndEpoch | None:
    """None if a follower at (`fetch_offset`, `last_fetched_epoch`) has a prefix of `log`.

    Otherwise the end of the newest epoch that both may share: the follower cuts its log there and asks again
    (KIP-595, Fetch; the check is Kafka's `validateOffsetAndEpoch`).
    """
    if fetch_offset == 0 and log.log_start_offset == 0:
        return None
    end = log.end_offset_for_epoch(last_fetched_epoch)
    if end.epoch != last_fetched_epoch or end.offset < fetch_offset:
        return end
    return None


def snapshot_needed(log: LogIndex, fetch_offset: int, last_fetched_epoch: int) -> OffsetAndEpoch | None:
    """The snapshot by which a follower at this position must come in, if the log cannot serve it (KIP-630).

    The log's start is gone past it, or it stands at that start with another history, or in an epoch older than all
    that is left; and whoever begins at 0 is spared the replay. The bootstrap snapshot (0, 0) is never offered: it
    is in the log.
    """
    first, newest = log.first_snapshot, log.newest_snapshot
    if first is None or newest is None:
        return None
    if fetch_offset == 0 and newest.offset > 0:
        return newest
    if fetch_offset == 0 and log.log_start_offset == 0:
        return None
    is_before = fetch_offset < log.log_start_offset
    is_other_start = fetch_offset == log.log_start_offset and last_fetched_epoch != first.epoch
    return newest if is_before or is_other_start or last_fetched_epoch < first.epoch else None


def truncation_target(log: LogIndex, diverging: OffsetAndEpoch) -> int:
    """How far a follower told of `diverging` must cut its own log; each round shrinks the log or ends the search."""
    if diverging.epoch == 0:
        return min(diverging.offset, log.log_end_offset)
    local_end = log.end_offset_for_epoch(diverging.epoch)
    if local_end.epoch == diverging.epoch:
        return min(local_end.offset, diverging.offset)
    return local_end.offset


def majority_offset(end_offsets: Iterable[int]) -> int:
    """The offset that a majority of the voters has reached; -1 counts as nothing.

    With the offsets in descending order, the one at index n // 2 is reached by n // 2 + 1 voters.
    """
    descending = sorted(end_offsets, reverse=True)
    return descending[len(descending) // 2] if descending else -1
