"""The workers of config-set: clients of a broker, and clients of the leading controller."""

from typing import Final, Protocol

from tests.jepsen.core.client import RawClient
from tests.jepsen.core.errors import ClientError
from tests.jepsen.core.history import Op, OpType
from tests.jepsen.workloads.config_client import (
    APPEND_ITEM,
    LIST_CONFIG,
    PLAIN_CONFIG,
    SET,
    SUBTRACT_ITEM,
    ConfirmedConfigs,
    alter,
    create_topic,
    describe,
)
from tests.jepsen.workloads.connected import raw_client
from tests.jepsen.workloads.register_controllers import Controllers
from tests.jepsen.workloads.workload import Setup

ADD_TOPIC, APPEND, SUBTRACT, DESCRIBE = "add-topic", "append", "subtract", "describe"
SET_CONFIG, READ_ITEMS, READ_CONFIG = "set-config", "read-items", "read-config"
TOPICS = tuple(f"config-set-{number}" for number in range(4))
_READS: Final = frozenset({DESCRIBE, READ_ITEMS, READ_CONFIG})


def item_of(number: int) -> str:
    """A partition and a broker, which is all that the config takes."""
    return f"{number}:1"


def topic_of(item: str) -> str:
    return TOPICS[int(item.partition(":")[0]) % len(TOPICS)]


class Place(Protocol):
    """Where a client asks. Every method raises ClientError."""

    def client(self) -> RawClient:
        """The connection for a change."""
        ...

    def read(self, op: Op) -> object: ...

    def close(self) -> None: ...


class BrokerPlace:
    def __init__(self, setup: Setup, node: int) -> None:
        self._client = raw_client(setup.network, node, setup.op_timeout_s)

    def client(self) -> RawClient:
        return self._client

    def read(self, op: Op) -> object:
        assert op.f == DESCRIBE, op.f
        return describe(self._client, TOPICS)

    def close(self) -> None:
        self._client.close()


class ControllerPlace:
    """The leader, as its home knows it (`Controllers`)."""

    def __init__(self, setup: Setup, home: int) -> None:
        self._setup = setup
        self._controllers = Controllers(setup, home, setup.op_timeout_s)
        self._configs = ConfirmedConfigs()

    def client(self) -> RawClient:
        return self._controllers.client(self._controllers.leader())

    def read(self, op: Op) -> object:
        address = self._setup.cluster.grpc_address(self._controllers.leader())
        self._configs.read(address, self._setup.op_timeout_s)
        if op.f == READ_ITEMS:
            return self._configs.items(TOPICS)
        assert op.f == READ_CONFIG, op.f
        return {"key": op.value["key"], "value": self._configs.plain(op.value["key"])}

    def close(self) -> None:
        self._controllers.close()


class ConfigWorker:
    def __init__(self, setup: Setup, place: Place) -> None:
        self._network = setup.network
        self._timeout_ms = round(setup.op_timeout_s * 1000)
        self._place = place
        self._is_client = False

    def open(self) -> None:
        if not self._is_client:
            self._network.enter_as_client()
            self._is_client = True

    def invoke(self, op: Op) -> Op:
        try:
            return op.ended(OpType.OK, self._place.read(op) if op.f in _READS else self._change(op))
        except ClientError as error:
            # A read that failed has no effect, whatever became of it.
            surely_not = error.definite or op.f in _READS
            return op.ended(OpType.FAIL if surely_not else OpType.INFO, op.value, error.reason)

    def _change(self, op: Op) -> object:
        client = self._place.client()
        if op.f == ADD_TOPIC:
            create_topic(client, op.value, self._timeout_ms)
        elif op.f == SET_CONFIG:
            alter(client, op.value["key"], PLAIN_CONFIG, SET, str(op.value["value"]))
        else:
            operation = {APPEND: APPEND_ITEM, SUBTRACT: SUBTRACT_ITEM}[op.f]
            alter(client, topic_of(op.value), LIST_CONFIG, operation, op.value)
        return op.value

    def close(self) -> None:
        self._place.close()
