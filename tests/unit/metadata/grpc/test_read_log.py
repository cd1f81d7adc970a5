"""Inspect.ReadLog over real loopback gRPC."""

import asyncio
import json
from collections import Counter

import grpc
import pytest

from kquorum.metadata.grpc.inspect import messages
from kquorum.wire.control_records import LeaderChangeMessage
from kquorum.wire.metadata_records.configs import ConfigRecord
from kquorum.wire.metadata_records.features import NoOpRecord
from kquorum.wire.metadata_records.security import UserScramCredentialRecord
from kquorum.wire.proto import inspect_pb2 as pb
from kquorum.wire.record_frame import DecodedRecord, decode_record_lenient
from kquorum.wire.uuids import uuid_to_text
from tests.support.grpc_harness import failure_of, run, serving, take, take_all
from tests.support.grpc_source import (
    EPOCH,
    TIMESTAMP_MS,
    FakeSource,
    partition,
    register_broker,
    topic,
    topic_id,
)

UNKNOWN_TYPE = bytes((1, 99, 0)) + b"later kafka"


def filled_source() -> FakeSource:
    """Offsets: 0 leader change (control), 1 broker, 2 topic, 3 partition, 4 no-op."""
    source = FakeSource()
    source.append_control(LeaderChangeMessage(leader_id=7))
    source.commit(register_broker(1))
    source.commit(topic("orders", 1), partition(1))
    source.commit(NoOpRecord())
    return source


def read(request: pb.ReadLogRequest, source: FakeSource | None = None) -> list[pb.LogRecord]:
    async def main() -> list[pb.LogRecord]:
        async with serving(source or filled_source()) as rig:
            return await take_all(rig.stub.ReadLog(request))

    return run(main)


def refusal(request: pb.ReadLogRequest, source: FakeSource | None = None) -> grpc.aio.AioRpcError:
    async def main() -> grpc.aio.AioRpcError:
        async with serving(source or filled_source()) as rig:
            return await failure_of(take_all(rig.stub.ReadLog(request)))

    return run(main)


def test_without_arguments_all_committed_data_records_are_read() -> None:
    records = read(pb.ReadLogRequest())
    assert [(record.offset, record.type) for record in records] == [
        (1, "RegisterBrokerRecord"),
        (2, "TopicRecord"),
        (3, "PartitionRecord"),
        (4, "NoOpRecord"),
    ]


def test_a_record_carries_its_place_and_its_fields() -> None:
    record = read(pb.ReadLogRequest(from_offset=2, to_offset=3))[0]
    assert (record.offset, record.leader_epoch, record.timestamp_ms) == (2, EPOCH, TIMESTAMP_MS + 2)
    assert (record.api_key, record.version, record.is_control, record.high_watermark) == (2, 0, False, 5)
    assert json.loads(record.json) == {"name": "orders", "topic_id": uuid_to_text(topic_id(1))}


def test_a_range_may_begin_and_end_inside_a_batch() -> None:
    assert [record.offset for record in read(pb.ReadLogRequest(from_offset=3, to_offset=4))] == [3]
    assert [record.offset for record in read(pb.ReadLogRequest(from_offset=1, to_offset=3))] == [1, 2]
    assert read(pb.ReadLogRequest(from_offset=5)) == []


def test_control_records_come_when_asked_for() -> None:
    record = read(pb.ReadLogRequest(include_control=True))[0]
    assert (record.offset, record.type, record.api_key, record.is_control) == (0, "LeaderChange", 2, True)
    assert json.loads(record.json)["leader_id"] == 7
    assert [record.offset for record in read(pb.ReadLogRequest(types=["LeaderChange"]))] == [0]


def test_only_the_types_asked_for_come() -> None:
    records = read(pb.ReadLogRequest(types=["TopicRecord", "NoOpRecord"]))
    assert [record.type for record in records] == ["TopicRecord", "NoOpRecord"]


def test_a_type_that_does_not_exist_is_refused_with_the_nearest() -> None:
    error = refusal(pb.ReadLogRequest(types=["TopicRecrod"]))
    assert error.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert "'TopicRecrod'" in error.details()
    assert "'TopicRecord'" in error.details()


def test_an_unknown_record_is_shown_raw_with_the_reason() -> None:
    source = filled_source()
    source.commit(UNKNOWN_TYPE)
    record = read(pb.ReadLogRequest(types=["Unknown"]), source)[0]
    assert (record.offset, record.type, record.api_key, record.json) == (5, "Unknown", 99, "")
    assert record.value == UNKNOWN_TYPE
    assert "99" in record.problem


def test_secrets_are_redacted_also_in_records_of_an_unknown_version() -> None:
    source = FakeSource()
    scram = UserScramCredentialRecord(
        name="alice", mechanism=1, salt=b"pepper", stored_key=b"stored", server_key=b"server", iterations=4096
    )
    source.commit(scram)
    source.commit(
        ConfigRecord(resource_type=4, resource_name="1", name="ssl.keystore.password", value="hunter2")
    )
    source.commit(bytes((1, 11, 9)) + b"hunter2")
    records = read(pb.ReadLogRequest(), source)
    assert json.loads(records[0].json) == {
        "name": "alice",
        "mechanism": 1,
        "salt": "[redacted]",
        "stored_key": "[redacted]",
        "server_key": "[redacted]",
        "iterations": 4096,
    }
    assert json.loads(records[1].json)["value"] == "[redacted]"
    assert (records[2].type, records[2].api_key, records[2].value) == ("Unknown", 11, b"")
    assert not any(b"hunter2" in record.SerializeToString() for record in records)


def test_what_is_not_committed_is_not_shown() -> None:
    source = filled_source()
    source.append(topic("secret-plans", 2))
    assert [record.offset for record in read(pb.ReadLogRequest(from_offset=4), source)] == [4]
    assert [record.offset for record in read(pb.ReadLogRequest(from_offset=4, to_offset=99), source)] == [4]


def test_a_follower_gets_what_is_committed_later() -> None:
    async def main() -> list[pb.LogRecord]:
        async with serving(filled_source()) as rig:
            call = rig.stub.ReadLog(pb.ReadLogRequest(from_offset=4, follow=True))
            first = await take(call, 1)
            rig.source.commit(topic("payments", 2))
            second = await take(call, 1)
            rig.source.append(NoOpRecord())
            rig.source.commit_all()  # no image changes, no callback
            return [*first, *second, *await take(call, 1)]

    records = run(main)
    assert [(record.offset, record.type) for record in records] == [
        (4, "NoOpRecord"),
        (5, "TopicRecord"),
        (6, "NoOpRecord"),
    ]
    assert [record.high_watermark for record in records] == [5, 6, 7]


def test_a_follower_with_an_end_stops_there() -> None:
    async def main() -> list[int]:
        async with serving(filled_source()) as rig:
            call = rig.stub.ReadLog(pb.ReadLogRequest(from_offset=4, to_offset=6, follow=True))
            offsets = [message.offset for message in await take(call, 1)]
            rig.source.commit(topic("payments", 2), partition(2))
            last, end = await take(call, 2)
            assert end is grpc.aio.EOF
            return [*offsets, last.offset]

    assert run(main) == [4, 5]


def test_a_follower_may_be_a_little_ahead_of_a_lagging_node() -> None:
    async def main() -> int:
        async with serving(filled_source()) as rig:
            call = rig.stub.ReadLog(pb.ReadLogRequest(from_offset=6, follow=True))
            await call.wait_for_connection()
            rig.source.commit(NoOpRecord(), NoOpRecord())
            return int((await take(call, 1))[0].offset)

    assert run(main) == 6


def test_an_offset_below_the_start_of_the_log_is_out_of_range() -> None:
    source = filled_source()
    source.start = 2
    error = refusal(pb.ReadLogRequest(from_offset=1), source)
    assert error.code() == grpc.StatusCode.OUT_OF_RANGE
    assert "offset 1 " in error.details()
    assert "2 to 5" in error.details()


def test_an_offset_far_above_the_end_is_out_of_range() -> None:
    for request in (pb.ReadLogRequest(from_offset=6), pb.ReadLogRequest(from_offset=10_000_000, follow=True)):
        error = refusal(request)
        assert error.code() == grpc.StatusCode.OUT_OF_RANGE
        assert str(request.from_offset) in error.details()
        assert "high watermark of node 7, 5" in error.details()


def test_an_end_before_the_start_is_an_invalid_request() -> None:
    error = refusal(pb.ReadLogRequest(from_offset=3, to_offset=2))
    assert error.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert "2 is below the first offset, 3" in error.details()


def test_damaged_bytes_end_the_stream_with_the_reason() -> None:
    source = filled_source()
    batch = source.batches[2]
    damaged = batch.data[:-1] + bytes((batch.data[-1] ^ 0xFF,))
    source.batches[2] = type(batch)(batch.base_offset, batch.last_offset, batch.leader_epoch, False, damaged)
    error = refusal(pb.ReadLogRequest(from_offset=2), source)
    assert error.code() == grpc.StatusCode.DATA_LOSS
    assert "cannot be read at 2" in error.details()
    assert "CRC" in error.details()


def test_a_follower_whose_log_is_truncated_below_it_gets_an_error() -> None:
    async def main() -> grpc.aio.AioRpcError:
        async with serving(filled_source()) as rig:
            call = rig.stub.ReadLog(pb.ReadLogRequest(from_offset=4, follow=True))
            await take(call, 1)
            rig.source.start = 8
            rig.source.commit(*[NoOpRecord()] * 5)
            return await failure_of(take(call, 1))

    error = run(main)
    assert error.code() == grpc.StatusCode.OUT_OF_RANGE
    assert "8 to 10" in error.details()


def test_streams_share_the_turns_of_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred filtered reads, each with its slice in every iteration, held the loop of a leader for a second."""
    source = FakeSource()
    source.commit(*[topic(f"topic-{number}", number) for number in range(1_000)])
    iteration = 0
    decoded: Counter[int] = Counter()

    def counting(value: bytes) -> DecodedRecord:
        decoded[iteration] += 1
        return decode_record_lenient(value)

    monkeypatch.setattr(messages, "decode_record_lenient", counting)
    monkeypatch.setattr(messages, "record_to_json", lambda _: pytest.fail("the record is not wanted"))

    async def main() -> None:
        loop = asyncio.get_running_loop()

        def next_iteration() -> None:
            nonlocal iteration
            iteration += 1
            loop.call_soon(next_iteration)

        async with serving(source) as rig:
            next_iteration()
            calls = [rig.stub.ReadLog(pb.ReadLogRequest(types=["ConfigRecord"])) for _ in range(10)]
            assert await asyncio.gather(*[take_all(call) for call in calls]) == [[]] * 10

    run(main)
    assert sum(decoded.values()) == 10_000
    assert max(decoded.values()) <= 128
