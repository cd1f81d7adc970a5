"""A short sequence of requests in which each rule of the model applies once: quick, and it finds planted faults."""

from tests.reference_model import requests
from tests.reference_model.twin import Twin


def run_short_sequence(twin: Twin) -> None:
    for broker_id in (1, 2, 3, 4):
        requests.register(twin, broker_id, incarnation=broker_id)
        requests.heartbeat(twin, broker_id)
    _in_sync_replicas(twin)
    _silence(twin)
    _elections(twin)
    _reassignments(twin)
    _directories(twin)
    _loss_of_leadership(twin)
    _the_last_in_sync_goes(twin)
    _all_go_and_come_back(twin)
    _a_crash_of_the_last_eligible(twin)


def _in_sync_replicas(twin: Twin) -> None:
    requests.create_topic(twin, "a", [[1, 2, 3], [2, 3, 1]], {"min.insync.replicas": "2"})
    requests.heartbeat(twin, 3, want_fence=True)
    requests.create_topic(twin, "b", [[3, 1]], {})
    requests.alter_partition(twin, 1, "a", 0, [2])
    requests.alter_partition(twin, 1, "a", 0, [1, 2, 3])
    requests.alter_partition(twin, 1, "a", 0, [1, 2], slip=(0, -1))
    requests.heartbeat(twin, 1, epoch_slip=-1)
    requests.alter_partition(twin, 1, "a", 0, [1])
    requests.alter_partition(twin, 1, "a", 0, [1, 2])
    requests.heartbeat(twin, 3)
    requests.alter_partition(twin, 1, "a", 0, [1, 2, 3])


def _silence(twin: Twin) -> None:
    requests.create_topic(twin, "s", [[3, 4]], {})
    requests.alter_partition(twin, 3, "s", 0, [3])
    twin.pass_time(8_000)
    for broker_id in (1, 2, 3):
        requests.heartbeat(twin, broker_id)
    twin.be_late(1_001)
    requests.alter_partition(twin, 3, "s", 0, [3, 4])
    twin.pass_time(0)
    requests.heartbeat(twin, 4)
    requests.delete_topic(twin, "s")


def _elections(twin: Twin) -> None:
    requests.heartbeat(twin, 1, want_fence=True)
    requests.heartbeat(twin, 1)
    requests.elect_leader(twin, "a", 0, unclean=False)
    requests.alter_partition(twin, 2, "a", 0, [2, 3, 1])
    requests.elect_leader(twin, "a", 0, unclean=False)
    requests.elect_leader(twin, "a", 0, unclean=True)
    for _ in range(3):
        requests.heartbeat(twin, 2, want_shut_down=True)
    requests.heartbeat(twin, 2)
    requests.register(twin, 2, incarnation=22, is_clean=True)
    requests.heartbeat(twin, 2)


def _reassignments(twin: Twin) -> None:
    requests.create_topic(twin, "m", [[1, 3]], {})
    requests.reassign(twin, "m", 0, [4, 2])
    requests.alter_partition(twin, 1, "m", 0, [1, 3, 4])
    requests.reassign(twin, "m", 0, None)
    requests.reassign(twin, "m", 0, None)
    requests.reassign(twin, "m", 0, [4, 2])
    requests.alter_partition(twin, 1, "m", 0, [1, 3, 4, 2])
    requests.create_partitions(twin, "m", 2, [[2, 1]])
    requests.place_topic(twin, "p", 3, 2)
    requests.delete_topic(twin, "p")


def _loss_of_leadership(twin: Twin) -> None:
    requests.register(twin, 5, incarnation=5)
    requests.heartbeat(twin, 5)
    requests.create_topic(twin, "g", [[5]], {})
    requests.heartbeat(twin, 5, want_shut_down=True)
    twin.is_holding = True
    requests.create_topic(twin, "c", [[1]], {})
    requests.create_topic(twin, "d", [[1]], {})
    twin.commit_some(1)
    twin.fail_over()
    twin.is_holding = False
    _live_on(twin)


def _the_last_in_sync_goes(twin: Twin) -> None:
    for broker_id in (7, 8):
        requests.register(twin, broker_id, incarnation=broker_id)
        requests.heartbeat(twin, broker_id)
    requests.create_topic(twin, "l", [[7, 8]], {})
    requests.alter_partition(twin, 7, "l", 0, [7])
    requests.heartbeat(twin, 7, want_shut_down=True)
    requests.set_config(twin, "l", "unclean.leader.election.enable", "true")
    for broker_id in sorted(twin.model.brokers):
        requests.heartbeat(twin, broker_id)
    requests.heartbeat(twin, 7, want_shut_down=True)
    requests.unregister(twin, 7)
    requests.delete_topic(twin, "l")
    requests.unregister(twin, 8)


def _all_go_and_come_back(twin: Twin) -> None:
    twin.pass_time(9_001)
    for broker_id in (3, 2, 1):
        requests.heartbeat(twin, broker_id)
    requests.set_config(twin, "b", "unclean.leader.election.enable", "true")
    requests.elect_leader(twin, "m", 0, unclean=True)
    requests.register(twin, 3, incarnation=33)
    requests.heartbeat(twin, 3, want_fence=True)
    requests.register(twin, 3, incarnation=34)
    requests.set_config(twin, "a", "min.insync.replicas", "3")
    requests.turn_elr(twin, on=not twin.has_elr)
    requests.heartbeat(twin, 3)
    requests.unregister(twin, 4)


def _a_crash_of_the_last_eligible(twin: Twin) -> None:
    if not twin.model.has_elr:
        requests.turn_elr(twin, on=True)
    requests.create_topic(twin, "y", [[1, 3], [3, 1]], {"min.insync.replicas": "2"})
    requests.alter_partition(twin, 1, "y", 0, [1])
    requests.turn_elr(twin, on=False)
    requests.turn_elr(twin, on=True)
    requests.register(twin, 6, incarnation=6)
    requests.heartbeat(twin, 6)
    requests.create_topic(twin, "z", [[6]], {})
    requests.heartbeat(twin, 6, want_fence=True)
    requests.turn_elr(twin, on=False)
    requests.register(twin, 6, incarnation=66)
    requests.heartbeat(twin, 6)


def _directories(twin: Twin) -> None:
    requests.create_topic(twin, "e", [[3, 1]], {})
    requests.create_topic(twin, "w", [[3]], {})
    requests.assign_directory(twin, 3, "e", 0, 1)
    requests.assign_directory(twin, 3, "w", 0, 1)
    requests.heartbeat(twin, 3, offline=(1,))
    requests.assign_directory(twin, 1, "e", 0, 1)
    requests.assign_directory(twin, 2, "e", 0, 1)
    requests.register(twin, 3, incarnation=3)
    _live_on(twin)


def _live_on(twin: Twin) -> None:
    """Everybody, for so long that the controller looks for partitions without a leader."""
    for _ in range(2):
        twin.pass_time(5_000)
        for broker_id in sorted(twin.model.brokers):
            requests.heartbeat(twin, broker_id)
