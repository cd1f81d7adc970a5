"""A short story in which each rule of the model has its say once: quick to tell, and faults planted are found in it."""

from tests.reference_model import requests
from tests.reference_model.twin import Twin


def tell(twin: Twin) -> None:
    for broker_id in (1, 2, 3, 4):
        requests.register(twin, broker_id, incarnation=broker_id)
        requests.heartbeat(twin, broker_id)
    _in_sync_replicas(twin)
    _elections(twin)
    _reassignments(twin)
    _directories(twin)
    _loss_of_leadership(twin)
    _all_go_and_come_back(twin)


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
    twin.is_holding = True
    requests.create_topic(twin, "c", [[1]], {})
    requests.create_topic(twin, "d", [[1]], {})
    twin.commit_some(1)
    twin.fail_over()
    twin.is_holding = False


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


def _directories(twin: Twin) -> None:
    requests.create_topic(twin, "e", [[3, 1]], {})
    requests.assign_directory(twin, 3, "e", 0, 1)
    requests.heartbeat(twin, 3, offline=(1,))
    requests.assign_directory(twin, 1, "e", 0, 1)
    requests.assign_directory(twin, 2, "e", 0, 1)
    requests.register(twin, 3, incarnation=3)
