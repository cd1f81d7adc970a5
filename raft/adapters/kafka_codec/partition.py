"""What all quorum APIs share: exactly one topic with one partition, and the leader's endpoint beside the answer."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from kquorum.raft.messages import NO_LEADER
from kquorum.raft.voters import Endpoint
from kquorum.wire.errors import DecodeError
from kquorum.wire.message_schema import Request, Response

TOPIC_NAME = "__cluster_metadata"
PARTITION = 0
Endpoints = Mapping[int, Endpoint]

KafkaRequest = TypeVar("KafkaRequest", bound=Request[Any])
KafkaResponse = TypeVar("KafkaResponse", bound=Response)
# Of `raft.messages`.
RaftRequest = TypeVar("RaftRequest")
RaftResponse = TypeVar("RaftResponse")


@dataclass(frozen=True, slots=True)
class Refusal:
    """The answer to a request which the core cannot be asked."""

    response: Response


@dataclass(frozen=True, slots=True)
class ApiCodec(Generic[KafkaRequest, KafkaResponse, RaftRequest, RaftResponse]):
    """One API between Kafka's messages (of any version in `versions`, both ends included) and the core's.

    `encode_request` raises UnsupportedVersion when the version cannot say what the request means; `decode_response`
    raises DecodeError when the answer is not about the metadata partition; its text is the listener that the leader's
    endpoint belongs to, which no response names. `encode_response` gets the endpoint of the leader, None while that is
    unknown.
    """

    api_key: int
    versions: tuple[int, int]
    decode_request: Callable[[KafkaRequest], RaftRequest | Refusal]
    encode_request: Callable[[RaftRequest, int], KafkaRequest]
    decode_response: Callable[[KafkaResponse, str], RaftResponse]
    encode_response: Callable[[RaftResponse, Endpoint | None], KafkaResponse]


class _Partition(Protocol):
    @property
    def partition_index(self) -> int: ...


P_co = TypeVar("P_co", bound=_Partition, covariant=True)


class _Topic(Protocol[P_co]):
    @property
    def topic_name(self) -> str: ...
    @property
    def partitions(self) -> tuple[P_co, ...]: ...


def find_partition(topics: Sequence[_Topic[P_co]]) -> P_co | None:
    """The metadata partition of a request or response; None unless it is the only one named."""
    if len(topics) != 1 or topics[0].topic_name != TOPIC_NAME or len(topics[0].partitions) != 1:
        return None
    partition = topics[0].partitions[0]
    return partition if partition.partition_index == PARTITION else None


P = TypeVar("P")


def known(partition: P | None) -> P:
    """The partition of a response; raises DecodeError for None."""
    if partition is None:
        raise DecodeError("the response is not about the metadata partition alone")
    return partition


N_co = TypeVar("N_co", covariant=True)


class _NodeType(Protocol[N_co]):
    def __call__(self, *, node_id: int, host: str, port: int) -> N_co: ...


def node_endpoints(cls: _NodeType[N_co], leader_id: int, endpoint: Endpoint | None) -> tuple[N_co, ...]:
    """Where the leader listens (KIP-853); nothing while it is unknown. Versions before have no such field."""
    if endpoint is None or leader_id == NO_LEADER:
        return ()
    return (cls(node_id=leader_id, host=endpoint.host, port=endpoint.port),)


class _Node(Protocol):
    @property
    def node_id(self) -> int: ...
    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...


def leader_endpoints(nodes: Sequence[_Node], leader_id: int, listener: str) -> tuple[Endpoint, ...]:
    """The leader's entry among the nodes of a response, if there is one; versions before KIP-853 name none."""
    for node in nodes:
        if node.node_id == leader_id:
            return (Endpoint(listener, node.host, node.port),)
    return ()


def endpoint_of_leader(response: Any, endpoints: Endpoints, listener: str) -> Endpoint | None:
    """Where to send a peer that asked through `listener`: as the core says, else as the table does.

    Of several endpoints the one of that listener is named, as Kafka does.
    """
    leader_id = getattr(response, "leader_id", NO_LEADER)
    if leader_id == NO_LEADER:
        return None
    known_endpoints: tuple[Endpoint, ...] = getattr(response, "leader_endpoints", ())
    for endpoint in known_endpoints:
        if endpoint.listener == listener:
            return endpoint
    return known_endpoints[0] if known_endpoints else endpoints.get(leader_id)


L_co = TypeVar("L_co", covariant=True)


class _ListenerType(Protocol[L_co]):
    def __call__(self, *, name: str, host: str, port: int) -> L_co: ...


def listeners_from(cls: _ListenerType[L_co], endpoints: Sequence[Endpoint]) -> tuple[L_co, ...]:
    return tuple([cls(name=item.listener, host=item.host, port=item.port) for item in endpoints])


class _Listener(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...


def listeners_of(entries: Sequence[_Listener]) -> tuple[Endpoint, ...]:
    return tuple([Endpoint(item.name, item.host, item.port) for item in entries])
