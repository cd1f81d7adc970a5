"""Which checkers judge a run, whether it has just ended or lies in the store."""

import json
from collections.abc import Sequence
from pathlib import Path

from tests.jepsen.checkers.availability import Availability
from tests.jepsen.checkers.faults_happened import FaultsHappened
from tests.jepsen.checkers.lawful import Lawful
from tests.jepsen.checkers.node_logs import NodeLogs
from tests.jepsen.checkers.performance import Performance
from tests.jepsen.checkers.progress import Progress
from tests.jepsen.checkers.replicas import Replicas
from tests.jepsen.checkers.verdicts import Checker, Results, Stats, check_all
from tests.jepsen.checkers.verified import Verified
from tests.jepsen.core.history import History, read_history
from tests.jepsen.core.members import Members
from tests.jepsen.core.store import HISTORY_FILE, TEST_FILE
from tests.jepsen.faults.catalogue import ALL, NONE
from tests.jepsen.faults.disk_faults import FAIL_DISKS, TAKE_RECORDS
from tests.jepsen.workloads.catalogue import kinds_of
from tests.jepsen.workloads.workload import Judged, WorkloadKind


def judge(
    folder: Path, kinds: Sequence[WorkloadKind], members: Members, history: History, *, nemesis: str
) -> Results:
    """`nemesis` is what was asked for, or NONE where no fault was to be."""
    judged = Judged(folder=folder, members=members)
    writes = frozenset(f for kind in kinds for f in kind.writes)
    reads = frozenset(f for kind in kinds for f in kind.reads)
    incidental = frozenset(f for kind in kinds for f in kind.incidental)
    checkers: list[Checker] = [Stats(incidental), *(each for kind in kinds for each in kind.checkers(judged))]
    if nemesis != NONE:
        checkers.append(FaultsHappened(each=nemesis != ALL))
    if nemesis != NONE and len(members.controllers) > 2:  # one of two is half of them
        checkers.append(Progress(writes))
    disks_were_hurt = any(op.f in TAKE_RECORDS for op in history if not op.is_client)
    checkers += [
        Replicas(folder, members, disks_were_hurt=disks_were_hurt),
        Lawful(folder, members),
        Verified(folder, members, disks_were_hurt=disks_were_hurt),
        Availability(writes, reads, {kind.name: kind.writes for kind in kinds}),
        Performance(),
        NodeLogs(folder, _nodes_with_failed_disks(history)),
    ]
    return check_all(checkers, history)


def judge_stored(folder: Path) -> Results:
    """Judge the history in a run's folder again. Raises OSError, ValueError, MalformedHistory or UnknownWorkload."""
    history = read_history(folder / HISTORY_FILE)
    test = json.loads((folder / TEST_FILE).read_text())
    try:
        members = Members(**{name: tuple(node_ids) for name, node_ids in test["members"].items()})
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{folder / TEST_FILE} does not describe a run") from error
    return judge(folder, kinds_of(test["workload"]), members, history, nemesis=test["nemesis"])


def _nodes_with_failed_disks(history: History) -> frozenset[int]:
    """They have to stop, and say why."""
    return frozenset(
        node_id
        for op in history
        if not op.is_client and op.f in FAIL_DISKS and op.value is not None
        for node_id in op.value["nodes"]
    )
