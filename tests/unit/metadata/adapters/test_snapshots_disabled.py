"""Whose image lacks something that was committed writes no snapshot: it would lose that for good."""

import logging

import pytest

from kquorum.broker.metadata_cache.cache import MetadataCache
from kquorum.broker.state_machine import BrokerStateMachine
from kquorum.wire.log_batch import build_batch
from kquorum.wire.metadata_records.features import FeatureLevelRecord
from kquorum.wire.metadata_records.topics import RemoveTopicRecord
from kquorum.wire.record_frame import encode_record
from kquorum.wire.uuids import ZERO_UUID
from tests.support.metadata.snapshot_parts import run
from tests.support.metadata.snapshot_rig import Rig, image_at


def test_none_is_written_until_a_state_comes_from_elsewhere(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        rig = Rig()
        rig.keeper.start()
        rig.keeper.disable("offset 7 was skipped")
        rig.keeper.disable("offset 8 was skipped")
        rig.publish(image_at(50))
        rig.commit()
        assert rig.replica.quorum_offsets == [], "nothing was begun"
        rig.keeper.handle_snapshot(rig.now_ms, image_at(60), None)
        rig.publish(image_at(70))
        rig.commit()
        await rig.written(70)
        await rig.keeper.close()

    run(test())
    told = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert [record.getMessage() for record in told] == [
        "no snapshots are written from now on, and the log is kept: offset 7 was skipped"
    ]


def test_a_broker_tells_of_what_it_skips() -> None:
    machine = BrokerStateMachine(MetadataCache())
    told: list[str] = []
    machine.fault_observers.append(told.append)
    level = encode_record(FeatureLevelRecord(name="metadata.version", feature_level=25))
    removal = encode_record(RemoveTopicRecord(topic_id=ZERO_UUID))
    machine.handle_commit(
        0, [build_batch(0, 1, 1000, [(None, level), (None, removal), (None, b"\x01\x7f\x00")])]
    )
    assert len(told) == 2
    assert machine.image.metadata_version == 25
