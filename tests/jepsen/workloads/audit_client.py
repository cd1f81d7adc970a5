"""Administrative changes, one request each, and what a broker then shows of them."""

from collections.abc import Callable, Mapping
from typing import Any

from kquorum.wire.protocol.apis import ApiKey
from tests.jepsen.checkers.audit_tables import (
    CHANGE,
    CREATE,
    DELETE,
    DESCRIBE,
    GROW,
    SET,
    TOPIC_PREFIX,
    UNSET,
)
from tests.jepsen.core.client import RawClient
from tests.jepsen.core.errors import ClientError, refused, unanswered
from tests.jepsen.core.history import Op, OpType
from tests.jepsen.net.network import Network
from tests.jepsen.workloads.connected import Connected, raw_client

KEYS = ("retention.ms", "max.message.bytes", "segment.ms")
IMPOSSIBLE_REPLICAS = 99
_TOPIC_RESOURCE, _TOPIC_CONFIG, _UNKNOWN_TOPIC = 2, 1, 3
_ALTER_SET, _ALTER_DELETE = 0, 1
_INVALID_PARTITIONS = 37

Value = Mapping[str, Any]


def topic_name(number: int) -> str:
    return f"{TOPIC_PREFIX}{number:06d}"


class AuditClient:
    """A change is `{"change": create|grow|set|unset|delete, "topic": name, ...}`."""

    def __init__(self, raw: RawClient, timeout_ms: int) -> None:
        self._raw = raw
        self._timeout_ms = timeout_ms

    def change(self, value: Value) -> None:
        """Returns once the cluster has acknowledged it. Raises ClientError."""
        changes: dict[str, Callable[[Value], None]] = {
            CREATE: self._create,
            GROW: self._grow,
            SET: self._alter,
            UNSET: self._alter,
            DELETE: self._delete,
        }
        changes[value["change"]](value)

    def describe(self) -> dict[str, object]:
        """Our topics, with their partitions and the configs that were set. Raises ClientError."""
        topics = self._topics()
        return {"topics": topics, "configs": self._configs(sorted(topics))}

    def close(self) -> None:
        self._raw.close()

    def _create(self, value: Value) -> None:
        topic = {
            "name": value["topic"],
            "num_partitions": value["partitions"],
            "replication_factor": value.get("replicas", 1),
            "assignments": (),
            "configs": (),
        }
        body = {"topics": [topic], "timeout_ms": self._timeout_ms, "validate_only": False}
        _check_only(self._raw.request(ApiKey.CREATE_TOPICS, body).topics)

    def _grow(self, value: Value) -> None:
        topic = {"name": value["topic"], "count": value["partitions"], "assignments": None}
        body = {"topics": [topic], "timeout": self._timeout_ms, "validate_only": False}
        # A broker that asked twice may have been told that the partitions are there already.
        _check_only(self._raw.request(ApiKey.CREATE_PARTITIONS, body).results, doubtful=_INVALID_PARTITIONS)

    def _alter(self, value: Value) -> None:
        operation = _ALTER_SET if value["change"] == SET else _ALTER_DELETE
        config = {"name": value["key"], "config_operation": operation, "value": value.get("value")}
        resource = {
            "resource_type": _TOPIC_RESOURCE,
            "resource_name": value["topic"],
            "configs": [config],
        }
        body = {"resources": [resource], "validate_only": False}
        _check_only(self._raw.request(ApiKey.INCREMENTAL_ALTER_CONFIGS, body).responses)

    def _delete(self, value: Value) -> None:
        name = value["topic"]
        body = {
            "topics": [{"name": name, "topic_id": None}],
            "topic_names": [name],
            "timeout_ms": self._timeout_ms,
        }
        _check_only(self._raw.request(ApiKey.DELETE_TOPICS, body).responses)

    def _topics(self) -> dict[str, int]:
        body = {
            "topics": None,
            "allow_auto_topic_creation": False,
            "include_cluster_authorized_operations": False,
            "include_topic_authorized_operations": False,
        }
        response = self._raw.request(ApiKey.METADATA, body)
        if code := int(getattr(response, "error_code", 0)):
            raise refused(code, response.error_code.name, None)
        return {
            str(topic.name): len(topic.partitions)
            for topic in response.topics
            if str(topic.name).startswith(TOPIC_PREFIX)
        }

    def _configs(self, topics: list[str]) -> dict[str, dict[str, str]]:
        """Of the topics for which something was set."""
        if not topics:
            return {}
        resources = [
            {"resource_type": _TOPIC_RESOURCE, "resource_name": name, "configuration_keys": KEYS}
            for name in topics
        ]
        body = {"resources": resources, "include_synonyms": False, "include_documentation": False}
        found: dict[str, dict[str, str]] = {}
        for result in self._raw.request(ApiKey.DESCRIBE_CONFIGS, body).results:
            code = int(result.error_code)
            if code and code != _UNKNOWN_TOPIC:  # it may have been deleted since it was listed
                raise refused(code, result.error_code.name, result.error_message)
            own = {
                each.name: each.value for each in result.configs if int(each.config_source) == _TOPIC_CONFIG
            }
            if own:
                found[result.resource_name] = own
        return found


def _check_only(results: Any, *, doubtful: int = 0) -> None:
    if len(results) != 1:
        raise unanswered(f"one change was asked for, {len(results)} were answered")
    (result,) = results
    code = int(result.error_code)
    if not code:
        return
    error = refused(code, result.error_code.name, result.error_message)
    raise ClientError(error.reason, definite=error.definite and code != doubtful)


class AuditWorker(Connected[AuditClient]):
    """Changes and describes at one broker."""

    def __init__(self, network: Network, node_id: int, timeout_s: float) -> None:
        def make_client() -> AuditClient:
            raw = raw_client(network, node_id, timeout_s)
            return AuditClient(raw, timeout_ms=round(timeout_s * 1000))

        super().__init__(make_client, network)

    def invoke(self, op: Op) -> Op:
        assert self._client is not None
        try:
            if op.f == DESCRIBE:
                return op.ended(OpType.OK, self._client.describe())
            assert op.f == CHANGE, op.f
            self._client.change(op.value)
        except ClientError as error:
            surely_not = error.definite or op.f == DESCRIBE
            return op.ended(OpType.FAIL if surely_not else OpType.INFO, op.value, error.reason)
        return op.ended(OpType.OK, op.value)
