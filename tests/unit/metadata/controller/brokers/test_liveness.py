"""Sessions and controlled shutdowns, as Kafka's BrokerHeartbeatManagerTest has them; a session lasts 10 ms."""

from uuid import UUID

from kquorum.metadata.controller.brokers.liveness import BrokerLiveness
from kquorum.metadata.image.cluster import BrokerRegistration


def broker(broker_id: int, *, fenced: bool = False) -> BrokerRegistration:
    return BrokerRegistration(id=broker_id, epoch=1, incarnation_id=UUID(int=9), fenced=fenced)


def three() -> BrokerLiveness:
    """0 was heard of at 0, 1 at 5, 2 at 6."""
    liveness = BrokerLiveness(0, 10, range(3))
    for broker_id, at_ms in ((0, 0), (1, 5), (2, 6)):
        liveness.touch(broker_id, at_ms, 0, fenced=False)
    return liveness


def test_valid_sessions() -> None:
    liveness = three()
    assert [liveness.has_valid_session(broker(each), 5) for each in range(4)] == [True, True, True, False]
    assert [liveness.has_valid_session(broker(each), 11) for each in range(4)] == [False, True, True, False]
    assert not liveness.has_valid_session(broker(1, fenced=True), 11)
    liveness.remove(2)
    assert not liveness.has_valid_session(broker(2), 11)


def test_the_stalest_broker_is_fenced_first() -> None:
    liveness = three()
    brokers = [broker(each) for each in range(3)]
    assert liveness.stale_broker(brokers, 10) is None
    assert liveness.stale_broker(brokers, 11) == brokers[0]
    assert liveness.stale_broker(brokers[1:], 11) is None
    assert liveness.stale_broker(brokers[1:], 31) == brokers[1]
    assert liveness.stale_broker([broker(each, fenced=True) for each in range(3)], 31) is None


def test_next_moment_to_look() -> None:
    liveness = three()
    assert liveness.next_expiry_ms([]) is None
    assert liveness.next_expiry_ms([broker(0, fenced=True)]) is None
    assert liveness.next_expiry_ms([broker(each) for each in range(3)]) == 11
    assert liveness.next_expiry_ms([broker(1), broker(2)]) == 16


def test_sign_of_life_that_came_too_late_still_counts() -> None:
    liveness = three()
    liveness.begin_controlled_shutdown(0, 7)
    liveness.refresh(0, 9)
    assert liveness.has_valid_session(broker(0), 19)
    assert liveness.shutdown_offset(0) == 7
    liveness.refresh(77, 9)
    assert not liveness.has_valid_session(broker(77), 9)


def test_lowest_offset_of_those_that_serve() -> None:
    liveness = BrokerLiveness(0, 10, range(5))
    brokers = [broker(each, fenced=each == 4) for each in range(5)]
    for broker_id, offset in ((0, 100), (1, 100), (2, 98), (3, 100), (4, 50)):
        liveness.touch(broker_id, 0, offset, fenced=broker_id == 4)
    assert liveness.lowest_active_offset(brokers) == 98
    liveness.begin_controlled_shutdown(2, 0)
    assert liveness.lowest_active_offset(brokers) == 100
    assert liveness.lowest_active_offset([brokers[2], brokers[4]]) is None


def test_shutdown_offset_is_set_once_and_ends_with_the_fence() -> None:
    liveness = three()
    assert liveness.shutdown_offset(1) is None
    liveness.begin_controlled_shutdown(1, 98)
    liveness.begin_controlled_shutdown(1, 99)
    assert liveness.shutdown_offset(1) == 98
    liveness.touch(1, 7, 0, fenced=False)
    assert liveness.shutdown_offset(1) == 98
    liveness.touch(1, 8, 0, fenced=True)
    assert liveness.shutdown_offset(1) is None


def test_new_process_knows_nothing_of_the_old_one() -> None:
    liveness = three()
    liveness.touch(1, 7, 55, fenced=False)
    liveness.begin_controlled_shutdown(1, 60)
    liveness.register(1, 8, is_new_incarnation=False)
    assert liveness.shutdown_offset(1) == 60
    liveness.register(1, 9, is_new_incarnation=True)
    assert liveness.shutdown_offset(1) is None
    assert liveness.lowest_active_offset([broker(1)]) == -1


def test_removal_ends_with_the_broker() -> None:
    liveness = three()
    liveness.begin_removal(1)
    liveness.begin_removal(2)
    assert [liveness.is_being_removed(each) for each in range(3)] == [False, True, True]
    liveness.end_removal(1)
    liveness.remove(2)
    assert not any(liveness.is_being_removed(each) for each in range(3))
