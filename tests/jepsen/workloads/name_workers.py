"""The clients of topics-set who fight for a name, and who give a name to one topic after another."""

import threading
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from kquorum.wire.protocol.apis import ApiKey
from tests.jepsen.checkers.names import RACE, REBIRTH, REBORN_PARTITIONS
from tests.jepsen.core.client import RawClient, TopicsClient
from tests.jepsen.core.errors import ClientError, refused, unanswered
from tests.jepsen.core.history import Op, OpType
from tests.jepsen.net.network import Network
from tests.jepsen.workloads.connected import Connected

FIRST_PARTITIONS: Final = 3
FIRST_CONFIG: Final = "retention.ms"
_POLL_S = 0.02
_TOPIC = 2
_OWN_CONFIG = 1  # DYNAMIC_TOPIC_CONFIG; all others are defaults, or another's
_NONE = 0


class Shown(NamedTuple):
    id: uuid.UUID
    partitions: int


class NameWorker(Connected[RawClient]):
    """Does races and rebirths at one broker. No step of a rebirth is begun when `timeout_s` have passed."""

    def __init__(self, make_client: Callable[[], RawClient], network: Network, timeout_s: float) -> None:
        super().__init__(make_client, network)
        self._timeout_s = timeout_s

    def invoke(self, op: Op) -> Op:
        assert self._client is not None
        try:
            if op.f == RACE:
                topic_id = create(self._client, op.value["name"], 1, {}, self._timeout_s)
                return op.ended(OpType.OK, {**op.value, "id": str(topic_id)})
            assert op.f == REBIRTH, op.f
            return op.ended(OpType.OK, {**op.value, **Rebirth(self._client, op.value, self._timeout_s).run()})
        except ClientError as error:
            # That one step of a rebirth had no effect says nothing of those before.
            surely_not = error.definite and op.f == RACE
            return op.ended(OpType.FAIL if surely_not else OpType.INFO, op.value, error.reason)


class Rebirth:
    """For once. `asked` has the `name` and the `retention_ms` of its first topic."""

    def __init__(self, client: RawClient, asked: Mapping[str, Any], timeout_s: float) -> None:
        self._client = client
        self._name = str(asked["name"])
        self._first_configs = {FIRST_CONFIG: str(asked["retention_ms"])}
        self._timeout_s = timeout_s
        self._until_s = time.monotonic() + timeout_s

    def run(self) -> dict[str, object]:
        """What the broker shows in the end. Raises ClientError, whatever had been done by then."""
        first_id = self._create(FIRST_PARTITIONS, self._first_configs)
        self._check_time()
        TopicsClient(self._client, round(self._timeout_s * 1000)).delete(self._name)
        self._check_time()
        second_id = self._create(REBORN_PARTITIONS, {})
        shown = self._second_life(first_id, second_id)
        self._check_time()
        return {
            "first_id": str(first_id),
            "second_id": str(second_id),
            "shown_id": str(shown.id),
            "partitions": shown.partitions,
            "configs": own_configs(self._client, self._name),
        }

    def _create(self, partitions: int, configs: Mapping[str, str]) -> uuid.UUID:
        return create(self._client, self._name, partitions, configs, self._timeout_s)

    def _second_life(self, first_id: uuid.UUID, second_id: uuid.UUID) -> Shown:
        """Brokers lag behind: until they have heard of the delete they show the topic that was, and then none."""
        pace = threading.Event()
        while True:
            self._check_time()
            shown = topic_shown(self._client, self._name)
            if shown is not None and (shown.id != first_id or first_id == second_id):
                return shown
            pace.wait(_POLL_S)

    def _check_time(self) -> None:
        if time.monotonic() >= self._until_s:
            raise unanswered("the time for a rebirth is over")


def create(
    client: RawClient, name: str, partitions: int, configs: Mapping[str, str], timeout_s: float
) -> uuid.UUID:
    """The id of the new topic. Raises ClientError."""
    topic = {
        "name": name,
        "num_partitions": partitions,
        "replication_factor": 1,
        "assignments": (),
        "configs": [{"name": key, "value": value} for key, value in configs.items()],
    }
    values = {"topics": [topic], "timeout_ms": round(timeout_s * 1000), "validate_only": False}
    (result,) = client.request(ApiKey.CREATE_TOPICS, values).topics
    _check(result)
    assert isinstance(result.topic_id, uuid.UUID), "a topic has an id"
    return result.topic_id


def topic_shown(client: RawClient, name: str) -> Shown | None:
    """None for a topic that the broker does not know. Raises ClientError."""
    response = client.request(
        ApiKey.METADATA,
        {
            "topics": [{"name": name, "topic_id": None}],
            "allow_auto_topic_creation": False,
            "include_cluster_authorized_operations": False,
            "include_topic_authorized_operations": False,
        },
    )
    (topic,) = response.topics
    if int(topic.error_code) != _NONE:
        return None
    return Shown(topic.topic_id, len(topic.partitions))


def own_configs(client: RawClient, name: str) -> dict[str, str]:
    """Those that were set for this topic. Raises ClientError."""
    resource = {"resource_type": _TOPIC, "resource_name": name, "configuration_keys": None}
    response = client.request(
        ApiKey.DESCRIBE_CONFIGS,
        {"resources": [resource], "include_synonyms": False, "include_documentation": False},
    )
    (result,) = response.results
    _check(result)
    return {str(each.name): str(each.value) for each in result.configs if each.config_source == _OWN_CONFIG}


def _check(result: Any) -> None:
    """The message is left out: it names the topic, and statistics would have as many errors as there are topics."""
    if int(result.error_code) != _NONE:
        raise refused(int(result.error_code), result.error_code.name, None)
