"""Configs as sets and registers: what the clients ask, what the log tells them, and what the checkers find."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kquorum.metadata.snapshot import LoadedSnapshot
from kquorum.wire.log_batch import OffsetAndEpoch
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.metadata_records.configs import ConfigRecord
from kquorum.wire.proto import inspect_pb2 as pb
from tests.jepsen.checkers.verdicts import VALID_KEY, Results, Verdict, check_all
from tests.jepsen.core.client import RawClient
from tests.jepsen.core.errors import ClientError
from tests.jepsen.core.generator import SECOND_NS, Phases
from tests.jepsen.core.history import History, Op, OpType
from tests.jepsen.core.instant import drive, setup_of
from tests.jepsen.core.members import Members
from tests.jepsen.workloads import config_client, config_set
from tests.jepsen.workloads.config_client import (
    LIST_CONFIG,
    PLAIN_CONFIG,
    ConfirmedConfigs,
    alter,
    describe,
)
from tests.jepsen.workloads.config_set import ConfigSet
from tests.jepsen.workloads.config_workers import (
    ADD_TOPIC,
    APPEND,
    DESCRIBE,
    READ_CONFIG,
    READ_ITEMS,
    SET_CONFIG,
    SUBTRACT,
    TOPICS,
    ConfigWorker,
)
from tests.jepsen.workloads.workload import Judged
from tests.support.images import image_of, topic_records

MEMBERS = Members((1, 2, 3), (11, 12))


class Configs:
    """A sound cluster; every `info_each`-th change is made without an answer."""

    def __init__(self, info_each: int = 0) -> None:
        self.topics: list[str] = []
        self.items: list[str] = []
        self.plain: dict[str, int] = {}
        self._info_each = info_each
        self._changes = 0

    def answer(self, op: Op) -> Op:
        if op.f in (DESCRIBE, READ_ITEMS):
            return op.ended(OpType.OK, list(self.items))
        if op.f == READ_CONFIG:
            return op.ended(OpType.OK, {**op.value, "value": self.plain.get(op.value["key"])})
        if op.f == ADD_TOPIC:
            self.topics.append(op.value)
            return op.ended(OpType.OK, op.value)
        if op.f == APPEND:
            self.items.append(op.value)
        elif op.f == SUBTRACT:
            self.items.remove(op.value)
        else:
            assert op.f == SET_CONFIG
            self.plain[op.value["key"]] = op.value["value"]
        self._changes += 1
        if self._info_each and self._changes % self._info_each == 0:
            return op.ended(OpType.INFO, op.value, "no answer")
        return op.ended(OpType.OK, op.value)


def driven(time_s: float, info_each: int = 0, cluster: Configs | None = None) -> History:
    workload = ConfigSet(setup_of(4, brokers=MEMBERS.brokers))
    found = Configs(info_each) if cluster is None else cluster
    whole = Phases(workload.main(round(time_s * SECOND_NS)), workload.final())
    return drive(workload, whole, found.answer)


def judged(history: History) -> Results:
    return check_all(config_set.checkers(Judged(folder=Path(), members=MEMBERS)), history)


def ends(history: History, f: str) -> list[Op]:
    return [op for op in history if op.f == f and op.type is OpType.OK]


def without(history: History, item: str, after: int, *fs: str) -> History:
    """As if the item had been lost at a line of the history."""
    return History(
        replace(op, value=[each for each in op.value if each != item])
        if op.index > after and op.f in fs and op.type is OpType.OK
        else op
        for op in history
    )


def an_item_that_stays(history: History) -> Op:
    subtracted = {op.value for op in history if op.f == SUBTRACT}
    return next(op for op in ends(history, APPEND) if op.value not in subtracted)


def test_what_a_sound_cluster_answers_is_valid() -> None:
    cluster = Configs(info_each=30)
    results = judged(driven(20, cluster=cluster))
    assert results[VALID_KEY] is Verdict.VALID, results
    assert tuple(cluster.topics) == TOPICS
    assert results["config-set"]["unsure_count"] > 5
    assert results["config-set"]["deleted_count"] > 20


def test_brokers_are_described_and_controllers_read() -> None:
    history = driven(10)
    assert {op.node for op in ends(history, DESCRIBE)} == set(MEMBERS.brokers)
    assert {op.node for op in ends(history, READ_ITEMS)} <= set(MEMBERS.controllers)
    assert {op.node for op in ends(history, APPEND)} & set(MEMBERS.brokers)
    assert {op.node for op in ends(history, APPEND)} & set(MEMBERS.controllers)


def test_no_more_items_than_a_config_can_hold_are_there_at_a_time() -> None:
    cluster = Configs()
    workload = ConfigSet(setup_of(4))
    drive(workload, workload.main(90 * SECOND_NS), cluster.answer)
    assert 300 < len(cluster.items) < 500


def test_an_acknowledged_append_that_is_lost_is_invalid() -> None:
    history = driven(5)
    lost = an_item_that_stays(history)
    results = judged(without(history, lost.value, lost.index, DESCRIBE))
    assert results["config-set"]["lost_count"] == 1
    assert results[VALID_KEY] is Verdict.INVALID


def test_a_confirmed_read_that_lags_behind_is_invalid() -> None:
    history = driven(5)
    late = an_item_that_stays(history)
    results = judged(without(history, late.value, late.index, READ_ITEMS))
    assert results["config-set"][VALID_KEY] is Verdict.VALID
    assert results["config-items-linear"][VALID_KEY] is Verdict.INVALID


def test_a_confirmed_read_of_a_value_that_was_replaced_is_invalid() -> None:
    history = driven(10)
    read = next(op for op in reversed(ends(history, READ_CONFIG)) if op.value["value"] is not None)
    lie = {**read.value, "value": 1 if read.value["value"] != 1 else 2}
    tampered = History(replace(op, value=lie) if op.index == read.index else op for op in history)
    assert judged(tampered)["config-plain-linear"][VALID_KEY] is Verdict.INVALID


def test_operations_of_other_workloads_are_not_judged() -> None:
    history = driven(5)
    foreign = Op(type=OpType.INVOKE, f="list", process=900, node=11)
    mixed = History([foreign, foreign.ended(OpType.OK, ["unknown"]), *history])
    assert judged(mixed)[VALID_KEY] is Verdict.VALID


def record(offset: int, name: str, config: str, value: str | None, resource_type: int = 2) -> pb.LogRecord:
    fields = {"resource_type": resource_type, "resource_name": name, "name": config, "value": value}
    return pb.LogRecord(offset=offset, type="ConfigRecord", json=json.dumps(fields))


def test_the_log_tells_what_the_configs_are() -> None:
    configs = ConfirmedConfigs()
    configs.replay(record(3, TOPICS[0], LIST_CONFIG, "1:1,5:1"))
    configs.replay(record(4, TOPICS[1], LIST_CONFIG, "2:1"))
    configs.replay(record(5, TOPICS[1], PLAIN_CONFIG, "17"))
    configs.replay(record(6, TOPICS[0], LIST_CONFIG, "9:1", resource_type=4))
    configs.replay(pb.LogRecord(offset=7, type="TopicRecord", json="{}"))
    assert configs.items(TOPICS) == ["1:1", "5:1", "2:1"]
    assert (configs.plain(TOPICS[0]), configs.plain(TOPICS[1])) == (None, 17)
    configs.replay(record(8, TOPICS[1], PLAIN_CONFIG, None))
    assert configs.plain(TOPICS[1]) is None


def test_a_log_that_goes_back_is_not_replayed() -> None:
    configs = ConfirmedConfigs()
    configs.replay(record(3, TOPICS[0], LIST_CONFIG, "1:1"))
    with pytest.raises(ClientError, match="offset 3 came after 3"):
        configs.replay(record(3, TOPICS[0], LIST_CONFIG, ""))
    assert configs.items(TOPICS) == ["1:1"]


class CutLog:
    """A stub of a node whose log begins at offset 90, where its newest snapshot ends."""

    def __init__(self) -> None:
        self.asked: list[object] = []

    def ReadLog(self, request: pb.ReadLogRequest, timeout: float) -> list[pb.LogRecord]:  # noqa: N802
        self.asked.append(request.from_offset)
        assert request.from_offset == 90
        return [record(90, TOPICS[1], PLAIN_CONFIG, "18")]

    def CopyLog(self, _request: pb.CopyLogRequest, timeout: float) -> list[pb.LogCopy]:  # noqa: N802
        names = ["bootstrap.checkpoint", *(f"{offset:020d}-0000000003.checkpoint" for offset in (40, 90))]
        return [pb.LogCopy(files=pb.LogFiles(snapshots=names))]

    def CopySnapshot(self, request: pb.CopySnapshotRequest, timeout: float) -> list[pb.FileChunk]:  # noqa: N802
        self.asked.append(request.name)
        return [pb.FileChunk(data=b"two "), pb.FileChunk(data=b"pieces")]


def test_where_the_log_was_cut_the_snapshot_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    image = image_of(
        *topic_records(1, TOPICS[1]),
        ConfigRecord(resource_type=2, resource_name=TOPICS[1], name=LIST_CONFIG, value="7:1"),
    )

    def loaded(content: bytes, snapshot: OffsetAndEpoch) -> LoadedSnapshot:
        assert (content, snapshot) == (b"two pieces", OffsetAndEpoch(90, 3))
        return LoadedSnapshot(image, None)

    monkeypatch.setattr(config_client, "load_snapshot", loaded)
    configs, stub = ConfirmedConfigs(), CutLog()
    configs.replay(record(3, TOPICS[0], LIST_CONFIG, "1:1"))
    configs._restart(stub, 1.0)
    assert stub.asked == ["00000000000000000090-0000000003.checkpoint", 90]
    assert (configs.items(TOPICS), configs.plain(TOPICS[1])) == (["7:1"], 18)
    with pytest.raises(ClientError, match="no snapshot has what is missing from offset 91 on"):
        configs._restart(stub, 1.0)


class Answers:
    """A RawClient that has one answer."""

    def __init__(self, **response: object) -> None:
        self._response = SimpleNamespace(**response)

    def request(self, _api_key: object, values: Mapping[str, Any]) -> object:
        self.asked = values
        return self._response


def described(error: ErrorCode, *values: str) -> SimpleNamespace:
    configs = tuple(SimpleNamespace(value=value) for value in values)
    return SimpleNamespace(error_code=error, error_message="", configs=configs)


def test_a_broker_that_does_not_know_a_topic_yet_shows_no_items_of_it() -> None:
    results = (described(ErrorCode.none, "4:1,8:1"), described(ErrorCode.unknown_topic_or_partition))
    assert describe(cast("RawClient", Answers(results=results)), TOPICS[:2]) == ["4:1", "8:1"]
    refusing = Answers(results=(described(ErrorCode.cluster_authorization_failed),))
    with pytest.raises(ClientError):
        describe(cast("RawClient", refusing), TOPICS[:1])


@pytest.mark.parametrize(
    ("error", "definite"),
    [
        (ErrorCode.invalid_config, True),
        (ErrorCode.not_controller, False),
        (ErrorCode.request_timed_out, False),
    ],
)
def test_a_refused_change_is_definite_if_nothing_was_written(error: ErrorCode, definite: bool) -> None:
    answers = Answers(responses=(SimpleNamespace(error_code=error, error_message="no"),))
    with pytest.raises(ClientError) as refusal:
        alter(cast("RawClient", answers), TOPICS[0], LIST_CONFIG, 2, "1:1")
    assert refusal.value.definite is definite


class Silent:
    """A place where nothing is answered."""

    def client(self) -> RawClient:
        raise ClientError("no answer", definite=False)

    def read(self, _op: Op) -> object:
        raise ClientError("no answer", definite=False)

    def close(self) -> None:
        pass


def test_a_read_that_failed_had_no_effect_and_a_change_may_have_had_one() -> None:
    worker = ConfigWorker(setup_of(1), Silent())
    append = Op(type=OpType.INVOKE, f=APPEND, value="1:1", process=0)
    assert worker.invoke(append).type is OpType.INFO
    for f in (DESCRIBE, READ_ITEMS, READ_CONFIG):
        assert worker.invoke(replace(append, f=f)).type is OpType.FAIL
