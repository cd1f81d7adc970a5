"""Why epochs began: what replicas noted and what the log holds, merged."""

from kquorum.raft import roles
from kquorum.raft.batches import leader_change_batch
from kquorum.raft.elections_history import Cause, Election, LeaderChangeAt, RoleEvent, leader_change_at, merge
from kquorum.wire.log_batch import build_batch

T0 = 1_700_000_000_000


def event(at: int, node_id: int, role: str, epoch: int, cause: str) -> RoleEvent:
    return RoleEvent(node_id=node_id, timestamp_ms=T0 + at, role=role, epoch=epoch, cause=cause)


def change(at: int, epoch: int, leader: int, offset: int, previous: int | None) -> LeaderChangeAt:
    return LeaderChangeAt(
        offset=offset,
        epoch=epoch,
        leader_id=leader,
        timestamp_ms=T0 + at,
        granting_voters=(leader, 9),
        previous_ms=None if previous is None else T0 + previous,
    )


def elected(at: int, node_id: int, epoch: int, why: str) -> list[RoleEvent]:
    """Prospective in the epoch before, candidate and leader of this one."""
    return [
        event(at, node_id, "prospective", epoch - 1, why),
        event(at + 5, node_id, "candidate", epoch, why),
        event(at + 10, node_id, "leader", epoch, why),
    ]


FIRST = [event(0, 1, "unattached", 0, roles.STARTED), *elected(10, 1, 1, roles.NO_LEADER_HEARD)]
FIRST_RECORD = change(20, 1, 1, 0, None)


def last(events: list[RoleEvent], *records: LeaderChangeAt) -> Election:
    return merge([*FIRST, *events], [FIRST_RECORD, *records])[-1]


def test_the_first_epoch_of_a_log_is_a_first_start() -> None:
    (only,) = merge(FIRST, [FIRST_RECORD])
    assert (only.cause, only.winner, only.stood, only.leaderless_ms) == (Cause.FIRST_START, 1, (1,), None)
    assert only.voted_for_winner == (1, 9)


def test_a_silent_leader_is_a_fetch_timeout_measured_from_its_last_record() -> None:
    found = last(elected(3000, 2, 2, roles.FETCH_TIMEOUT), change(3012, 2, 2, 40, previous=900))
    assert (found.epoch, found.cause, found.winner) == (2, Cause.FETCH_TIMEOUT, 2)
    assert found.leaderless_ms == 3012 - 900
    assert found.began_ms == T0 + 3005


def test_how_a_leader_left_is_why_the_next_was_elected() -> None:
    for words, cause in (
        (roles.SHUTDOWN, Cause.SHUTDOWN),
        (roles.TRANSFER % 2, Cause.TRANSFER),
        (roles.REMOVED, Cause.REMOVED_VOTER),
        (roles.CHECK_QUORUM, Cause.CHECK_QUORUM),
        (roles.CONTROLLER_RESIGNED, Cause.RESIGNATION),
        (roles.RESTARTED_LEADER, Cause.RESTART),
    ):
        gone = event(1000, 1, "resigned", 1, words)
        found = last([gone, *elected(1002, 2, 2, roles.LEADER_LEFT)], change(1015, 2, 2, 40, previous=990))
        assert (found.cause, found.detail) == (cause, f"node 1: {words}")
        assert found.leaderless_ms == 15


def test_who_gave_up_first_decides_between_resignation_and_timeout() -> None:
    """A leader that is cut off resigns, too, but only after its followers have given it up."""
    gone = event(3500, 1, "resigned", 1, roles.CHECK_QUORUM)
    found = last([gone, *elected(3000, 2, 2, roles.FETCH_TIMEOUT)], change(3600, 2, 2, 40, previous=900))
    assert found.cause is Cause.FETCH_TIMEOUT


def test_an_epoch_without_a_winner_is_shown_and_explains_the_next() -> None:
    lost = [
        event(3000, 3, "prospective", 1, roles.FETCH_TIMEOUT),
        event(3001, 3, "candidate", 2, roles.FETCH_TIMEOUT),
        event(3600, 3, "prospective", 2, "election timed out"),
    ]
    won = [event(3700, 2, "prospective", 2, "election timed out"), event(3701, 2, "candidate", 3, "x")]
    found = merge([*FIRST, *lost, *won], [FIRST_RECORD, change(3710, 3, 2, 40, previous=900)])
    assert [(item.epoch, item.cause, item.winner) for item in found[1:]] == [
        (2, Cause.FETCH_TIMEOUT, None),
        (3, Cause.NO_WINNER, 2),
    ]
    assert found[1].leaderless_ms is None
    assert found[2].leaderless_ms == 3710 - 900


def test_a_sole_voter_that_comes_back_is_a_restart() -> None:
    back = [event(5000, 1, "unattached", 1, roles.STARTED), *elected(5010, 1, 2, roles.NO_LEADER_HEARD)]
    assert last(back, change(5020, 2, 1, 40, previous=900)).cause is Cause.RESTART


def test_a_log_whose_replicas_noted_nothing_tells_its_leaders_all_the_same() -> None:
    first, second = merge([], [FIRST_RECORD, change(3000, 4, 2, 40, previous=900)])
    assert (first.epoch, first.cause, first.stood) == (1, Cause.FIRST_START, ())
    assert (second.epoch, second.winner, second.cause) == (4, 2, Cause.UNKNOWN)
    assert second.leaderless_ms == 2100


def test_what_several_places_tell_counts_once() -> None:
    blind = LeaderChangeAt(offset=0, epoch=1, leader_id=1, timestamp_ms=T0 + 20)
    once = merge(FIRST, [FIRST_RECORD])
    assert merge(FIRST * 2, [FIRST_RECORD, FIRST_RECORD, blind]) == once


def test_a_leader_change_is_found_in_its_batch_only() -> None:
    batch = leader_change_batch(40, 7, T0, leader_id=2, voters=(1, 2, 3), granting_voters=(2, 3))
    found = leader_change_at(batch, T0 - 5)
    assert found == LeaderChangeAt(
        offset=40,
        epoch=7,
        leader_id=2,
        timestamp_ms=T0,
        voters=(1, 2, 3),
        granting_voters=(2, 3),
        previous_ms=T0 - 5,
    )
    assert leader_change_at(build_batch(41, 7, T0, [(None, b"x")]), None) is None


def test_a_leader_that_was_killed_and_started_again_did_not_resign() -> None:
    """It says that it leads no more, which the others note as for one that left in good order."""
    found = last(
        [event(2900, 1, "follower", 1, roles.STARTED), *elected(3000, 2, 2, roles.LEADER_LEFT)],
        change(3012, 2, 2, 40, previous=900),
    )
    assert found.cause is Cause.RESTART
    found = last(elected(3000, 2, 2, roles.LEADER_LEFT), change(3012, 2, 2, 40, previous=900))
    assert found.cause is Cause.RESIGNATION
