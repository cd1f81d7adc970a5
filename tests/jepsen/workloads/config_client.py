"""What the clients of the workload config-set ask: changes of configs, and two kinds of reading.

`describe` asks a broker, which shows what it has applied. `ConfirmedConfigs` reads the metadata log at the leader up to
where a majority has confirmed it (`Inspect.ReadLog` with LINEARIZABLE), and replays it: nothing that was committed
when the read began is missing.
"""

import json
from collections.abc import Sequence
from typing import Any, Final

import grpc

from kquorum.metadata.snapshot import load_snapshot
from kquorum.node.config.addresses import HostPort
from kquorum.snapshots.naming import snapshot_id_of
from kquorum.wire.log_batch import OffsetAndEpoch
from kquorum.wire.proto import inspect_pb2 as pb
from kquorum.wire.proto.inspect_pb2_grpc import InspectStub
from kquorum.wire.protocol.apis import ApiKey
from tests.jepsen.core.client import RawClient
from tests.jepsen.core.errors import refused, unanswered
from tests.jepsen.core.inspector import client_error

LIST_CONFIG: Final = "leader.replication.throttled.replicas"
PLAIN_CONFIG: Final = "retention.ms"
SET, APPEND_ITEM, SUBTRACT_ITEM = 0, 2, 3
_TOPIC = 2
_NONE, _UNKNOWN_TOPIC_OR_PARTITION, _TOPIC_ALREADY_EXISTS = 0, 3, 36
_CONFIG_RECORD = "ConfigRecord"


def create_topic(client: RawClient, name: str, timeout_ms: int) -> None:
    """No other client creates it, so it may exist already. Raises ClientError."""
    topic = {"name": name, "num_partitions": 1, "replication_factor": 1, "assignments": (), "configs": ()}
    values = {"topics": [topic], "timeout_ms": timeout_ms, "validate_only": False}
    (result,) = client.request(ApiKey.CREATE_TOPICS, values).topics
    if int(result.error_code) not in (_NONE, _TOPIC_ALREADY_EXISTS):
        raise refused(int(result.error_code), result.error_code.name, result.error_message)


def alter(client: RawClient, topic: str, config: str, operation: int, value: str) -> None:
    """Raises ClientError."""
    change = {"name": config, "config_operation": operation, "value": value}
    resource = {"resource_type": _TOPIC, "resource_name": topic, "configs": [change]}
    response = client.request(
        ApiKey.INCREMENTAL_ALTER_CONFIGS, {"resources": [resource], "validate_only": False}
    )
    (result,) = response.responses
    if int(result.error_code) != _NONE:
        raise refused(int(result.error_code), result.error_code.name, result.error_message)


def describe(client: RawClient, topics: Sequence[str]) -> list[str]:
    """The items of all topics as the node shows them, doubles included; of a topic that it does not know, none.

    Raises ClientError.
    """
    resources = [
        {"resource_type": _TOPIC, "resource_name": topic, "configuration_keys": [LIST_CONFIG]}
        for topic in topics
    ]
    response = client.request(
        ApiKey.DESCRIBE_CONFIGS,
        {"resources": resources, "include_synonyms": False, "include_documentation": False},
    )
    found: list[str] = []
    for result in response.results:
        if int(result.error_code) == _UNKNOWN_TOPIC_OR_PARTITION:
            continue
        if int(result.error_code) != _NONE:
            raise refused(int(result.error_code), result.error_code.name, result.error_message)
        for config in result.configs:
            found += items_of(config.value)
    return found


def items_of(value: str | None) -> list[str]:
    return [item for item in (value or "").split(",") if item]


class ConfirmedConfigs:
    """The topics' configs by the log. It may be read at one node after the other: there is one log."""

    def __init__(self) -> None:
        self._next_offset = 0
        self._values: dict[tuple[str, str], str] = {}

    def read(self, address: HostPort, timeout_s: float) -> None:
        """Up to what was committed now. Raises ClientError; what had arrived by then counts all the same."""
        with grpc.insecure_channel(
            f"{address.host}:{address.port}", options=(("grpc.enable_http_proxy", 0),)
        ) as channel:
            stub: Any = InspectStub(channel)  # type: ignore[no-untyped-call]
            try:
                self._read_log(stub, timeout_s)
            except grpc.RpcError as error:
                if error.code() is not grpc.StatusCode.OUT_OF_RANGE:
                    raise client_error(error) from error
                self._restart(stub, timeout_s)

    def _read_log(self, stub: Any, timeout_s: float) -> None:
        request = pb.ReadLogRequest(from_offset=self._next_offset, consistency=pb.LINEARIZABLE)
        for record in stub.ReadLog(request, timeout=timeout_s):
            self.replay(record)

    def _restart(self, stub: Any, timeout_s: float) -> None:
        """The log begins behind what was read: its newest snapshot has what is missing. Raises ClientError."""
        try:
            header = next(iter(stub.CopyLog(pb.CopyLogRequest(), timeout=timeout_s)))
            found = [each for name in header.files.snapshots if (each := snapshot_id_of(name)) is not None]
            newest = max(found, key=lambda each: each.end_offset, default=None)
            if newest is None or newest.end_offset <= self._next_offset:
                raise unanswered(f"no snapshot has what is missing from offset {self._next_offset} on")
            chunks = stub.CopySnapshot(pb.CopySnapshotRequest(name=newest.file_name), timeout=timeout_s)
            content = b"".join(chunk.data for chunk in chunks)
            self.load(content, OffsetAndEpoch(newest.end_offset, newest.epoch))
            self._read_log(stub, timeout_s)
        except grpc.RpcError as error:
            raise client_error(error) from error

    def load(self, content: bytes, snapshot: OffsetAndEpoch) -> None:
        """Take the state of a snapshot for all that came before."""
        resources = load_snapshot(content, snapshot).image.configs.resources
        self._values = {
            (resource.name, name): value
            for resource, values in resources.items()
            if resource.type == _TOPIC
            for name, value in values.items()
        }
        self._next_offset = snapshot.offset

    def replay(self, record: pb.LogRecord) -> None:
        """Raises ClientError for a log that does not go on where it ended."""
        if record.offset < self._next_offset:
            raise unanswered(f"offset {record.offset} came after {self._next_offset - 1}")
        self._next_offset = record.offset + 1
        if record.type != _CONFIG_RECORD:
            return
        fields = json.loads(record.json)
        if fields["resource_type"] != _TOPIC:
            return
        place = (fields["resource_name"], fields["name"])
        if fields["value"] is None:
            self._values.pop(place, None)
        else:
            self._values[place] = fields["value"]

    def items(self, topics: Sequence[str]) -> list[str]:
        return [item for topic in topics for item in items_of(self._values.get((topic, LIST_CONFIG)))]

    def plain(self, topic: str) -> int | None:
        value = self._values.get((topic, PLAIN_CONFIG))
        return None if value is None else int(value)
