"""A state machine begins with the newest snapshot, whichever node leads and wherever the log begins; after
KafkaRaftClientSnapshotTest."""

import pytest

from kquorum.raft.ready import LeaderAndEpoch, Ready
from tests.support.raft.driver_parts import batch, run, until
from tests.support.raft.snapshot_rig import ID, SnapshotRig

ME, OTHER = LeaderAndEpoch(1, 2), LeaderAndEpoch(2, 2)


def rig_with_a_log(*, begins_at_snapshot: bool) -> SnapshotRig:
    """Records 0 to 8, and a snapshot that ends at 5."""
    rig = SnapshotRig()
    rig.log.append([batch(offset) for offset in range(9)])
    rig.log.add_snapshot(ID)
    if begins_at_snapshot:
        rig.log.advance_log_start(ID.offset)
    rig.journal.clear()
    return rig


@pytest.mark.parametrize("begins_at_snapshot", [False, True])
@pytest.mark.parametrize("leader", [ME, OTHER])
def test_it_gets_the_snapshot_and_then_what_is_committed_behind_it(
    leader: LeaderAndEpoch, *, begins_at_snapshot: bool
) -> None:
    """testLeaderListenerNotified, testFollowerListenerNotified"""

    async def scenario() -> None:
        rig = rig_with_a_log(begins_at_snapshot=begins_at_snapshot)
        rig.load_pause.hold()
        await rig.start()
        await rig.carry_out(Ready(high_watermark=9, leader=leader))
        assert not {"snapshot", "commit"} & set(rig.journal.kinds())
        rig.load_pause.release()
        await until(lambda: rig.driver.applied_offset == 9)
        told = [entry for entry in rig.journal if entry[0] in ("snapshot", "commit", "leader")]
        told_of_leader = ("leader", leader.leader_id, leader.epoch)
        assert told.count(told_of_leader) == 1
        told.remove(told_of_leader)
        assert told == [("snapshot", "state at 5"), ("commit", 5, 6, 7, 8)]
        if leader is ME:
            assert rig.journal[-1] == told_of_leader, "it leads when it knows what it leads with"
        await rig.driver.stop(1000)

    run(scenario())
