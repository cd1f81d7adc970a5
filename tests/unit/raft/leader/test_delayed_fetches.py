"""What a leader keeps of the Fetches that wait (raft/leader/delayed_fetches.py)."""

from kquorum.raft.leader.delayed_fetches import DelayedFetch, DelayedFetches
from kquorum.raft.messages import FetchRequest
from kquorum.raft.voters import ReplicaKey

FOR_EVER_MS = 2**31 - 1


def parked(request_id: int, replica: ReplicaKey, deadline_ms: int) -> DelayedFetch:
    request = FetchRequest(
        cluster_id=None,
        replica=replica,
        current_leader_epoch=1,
        fetch_offset=5,
        last_fetched_epoch=1,
        max_wait_ms=deadline_ms,
        max_bytes=1,
    )
    return DelayedFetch(replica, request_id, request, deadline_ms)


def test_a_replica_that_fetches_again_and_again_leaves_no_deadlines_behind() -> None:
    """A Fetch may ask to wait for 25 days, and be displaced by the next one at once."""
    fetches, replica, other = DelayedFetches(), ReplicaKey(4), ReplicaKey(5)
    fetches.add(parked(0, other, 7_000))
    for request_id in range(1, 10_000):
        fetches.pop(replica)
        fetches.add(parked(request_id, replica, FOR_EVER_MS))
    assert len(fetches) == 2
    assert len(fetches._deadlines) < 100
    assert list(fetches.deadlines_ms(0)) == [7_000]
    fetches.find_due(5, 5, 7_000)
    assert [delayed.name for delayed in fetches.due] == [other]


def test_the_deadline_of_a_displaced_fetch_does_not_answer_the_next_one() -> None:
    fetches, replica = DelayedFetches(), ReplicaKey(4)
    fetches.add(parked(1, replica, 100))
    fetches.pop(replica)
    fetches.add(parked(2, replica, 500))
    fetches.find_due(5, 5, 100)
    assert not fetches.due
    assert list(fetches.deadlines_ms(100)) == [500]
    fetches.find_due(5, 5, 500)
    assert [delayed.name for delayed in fetches.due] == [replica]
