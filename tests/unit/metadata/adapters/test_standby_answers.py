"""What a controller that does not lead answers, for every API, asked directly and in an envelope.

The table in docs/standby.md is the expectation: each of its rows is tried here.
"""

import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import pytest

from kquorum.metadata.adapters.listener import ControllerListener, controller_listener_apis
from kquorum.metadata.controller_apis import HANDLERS
from kquorum.metadata.forwarding import encode_address, encode_principal
from kquorum.network.requests import RequestContext
from kquorum.raft.adapters.kafka_codec import codec
from kquorum.raft.adapters.raft_requests import RaftRequests
from kquorum.raft.inputs import Input, ResignRequested
from kquorum.raft.messages import (
    AddRaftVoterRequest,
    BeginQuorumEpochRequest,
    DescribeQuorumRequest,
    EndQuorumEpochRequest,
    FetchSnapshotRequest,
    RemoveRaftVoterRequest,
    Request,
    UpdateRaftVoterRequest,
)
from kquorum.raft.ready import OutboundResponse
from kquorum.raft.voters import Endpoint, ReplicaKey
from kquorum.wire.log_batch import OffsetAndEpoch
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.headers import EncodedBody, RequestHeader, encode_body
from kquorum.wire.protocol.warm_up import warm_version
from tests.support.api_calls import as_read, request_of
from tests.support.controller_world import World
from tests.support.kio.classes import response_class
from tests.support.kio.codec import decode
from tests.support.kio.frames import decode_response, encode_request
from tests.support.raft.context import CLUSTER_ID, RaftContext, batch, key_of

PAGE = Path(__file__).parents[4] / "docs" / "standby.md"
OFFERED = controller_listener_apis()
STATES = ("follower", "resigned", "unattached")
LEADER, EPOCH = 2, 5
SASL_PLAINTEXT = 2
DIRECTORY, INCARNATION = UUID(int=4), UUID(int=44)
VOTER = ReplicaKey(4, DIRECTORY)
FEATURES = [{"name": "metadata.version", "min_supported_version": 1, "max_supported_version": 25}]
TIMEOUT_MS = 30_000
CONFIG = {"name": "retention.ms", "value": "1000"}
RESOURCE = {"resource_type": 2, "resource_name": "orders"}
BINDING = {
    "resource_type": 2,
    "resource_name": "orders",
    "resource_pattern_type": 3,
    "principal": "User:bob",
    "host": "*",
    "operation": 3,
    "permission_type": 3,
}
FILTER = {
    "resource_type_filter": 2,
    "resource_name_filter": "orders",
    "pattern_type_filter": 3,
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}
ENTITY = [{"entity_type": "user", "entity_name": "bob"}]
TOKEN_OWNER = {"owner_principal_type": None, "owner_principal_name": None}
BROKER = {"broker_id": 101, "broker_epoch": 7}
# A sensible request of each API, with an entry in every list that an answer has entries for.
VALUES: dict[ApiKey, dict[str, Any]] = {
    ApiKey.CREATE_TOPICS: {
        "topics": [
            {"name": "a", "num_partitions": 1, "replication_factor": 1, "assignments": (), "configs": ()},
            {"name": "b", "num_partitions": 1, "replication_factor": 1, "assignments": (), "configs": ()},
        ],
        "timeout_ms": TIMEOUT_MS,
        "validate_only": False,
    },
    ApiKey.DELETE_TOPICS: {
        "topics": [{"name": "a", "topic_id": None}],
        "topic_names": ["a"],
        "timeout_ms": TIMEOUT_MS,
    },
    ApiKey.DESCRIBE_ACLS: FILTER,
    ApiKey.CREATE_ACLS: {"creations": [BINDING]},
    ApiKey.DELETE_ACLS: {"filters": [FILTER]},
    ApiKey.DESCRIBE_CONFIGS: {
        "resources": [{"resource_type": 4, "resource_name": "", "configuration_keys": None}],
        "include_synonyms": False,
        "include_documentation": False,
    },
    ApiKey.ALTER_CONFIGS: {"resources": [RESOURCE | {"configs": [CONFIG]}], "validate_only": False},
    ApiKey.INCREMENTAL_ALTER_CONFIGS: {
        "resources": [RESOURCE | {"configs": [CONFIG | {"config_operation": 0}]}],
        "validate_only": False,
    },
    ApiKey.CREATE_PARTITIONS: {
        "topics": [{"name": "a", "count": 3, "assignments": None}],
        "timeout_ms": TIMEOUT_MS,
        "validate_only": False,
    },
    ApiKey.CREATE_DELEGATION_TOKEN: {**TOKEN_OWNER, "renewers": (), "max_lifetime_ms": 1000},
    ApiKey.RENEW_DELEGATION_TOKEN: {"hmac": b"hmac", "renew_period_ms": 1000},
    ApiKey.EXPIRE_DELEGATION_TOKEN: {"hmac": b"hmac", "expiry_time_period_ms": 1000},
    ApiKey.DESCRIBE_DELEGATION_TOKEN: {"owners": ()},
    ApiKey.ELECT_LEADERS: {
        "election_type": 0,
        "topic_partitions": [{"topic": "a", "partitions": [0]}],
        "timeout_ms": TIMEOUT_MS,
    },
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: {
        "timeout_ms": TIMEOUT_MS,
        "allow_replication_factor_change": True,
        "topics": [{"name": "a", "partitions": [{"partition_index": 0, "replicas": [101]}]}],
    },
    ApiKey.LIST_PARTITION_REASSIGNMENTS: {"timeout_ms": TIMEOUT_MS, "topics": None},
    ApiKey.DESCRIBE_CLIENT_QUOTAS: {"components": (), "strict": False},
    ApiKey.ALTER_CLIENT_QUOTAS: {
        "entries": [
            {"entity": ENTITY, "ops": [{"key": "producer_byte_rate", "value": 1024.0, "remove": False}]}
        ],
        "validate_only": False,
    },
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: {"users": None},
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: {"deletions": [{"name": "bob", "mechanism": 1}], "upsertions": ()},
    ApiKey.ALTER_PARTITION: {
        **BROKER,
        "topics": [
            {
                "topic_id": UUID(int=7),
                "partitions": [
                    {
                        "partition_index": 0,
                        "leader_epoch": 1,
                        "new_isr": [101],
                        "new_isr_with_epochs": [{"broker_id": 101, "broker_epoch": 7}],
                        "leader_recovery_state": 0,
                        "partition_epoch": 1,
                    }
                ],
            }
        ],
    },
    ApiKey.UPDATE_FEATURES: {
        "timeout_ms": TIMEOUT_MS,
        "feature_updates": [
            {
                "feature": "metadata.version",
                "max_version_level": 25,
                "allow_downgrade": False,
                "upgrade_type": 1,
            }
        ],
        "validate_only": False,
    },
    ApiKey.DESCRIBE_CLUSTER: {
        "include_cluster_authorized_operations": False,
        "endpoint_type": 2,
        "include_fenced_brokers": False,
    },
    ApiKey.BROKER_REGISTRATION: {
        "broker_id": 101,
        "cluster_id": CLUSTER_ID,
        "incarnation_id": INCARNATION,
        "listeners": (),
        "features": FEATURES,
        "rack": None,
        "log_dirs": (DIRECTORY,),
    },
    ApiKey.BROKER_HEARTBEAT: {
        **BROKER,
        "current_metadata_offset": 3,
        "want_fence": False,
        "want_shut_down": False,
    },
    ApiKey.UNREGISTER_BROKER: {"broker_id": 101},
    ApiKey.ALLOCATE_PRODUCER_IDS: BROKER,
    ApiKey.CONTROLLER_REGISTRATION: {
        "controller_id": 3,
        "incarnation_id": INCARNATION,
        "zk_migration_ready": False,
        "listeners": (),
        "features": FEATURES,
    },
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: {
        **BROKER,
        "directories": [
            {"id_": DIRECTORY, "topics": [{"topic_id": UUID(int=7), "partitions": [{"partition_index": 0}]}]}
        ],
    },
    ApiKey.LIST_CONFIG_RESOURCES: {"resource_types": ()},
}


def quorum_request(api_key: ApiKey, replica: RaftContext) -> Request:
    """What another replica of the quorum, or an operator, asks this one in its own epoch."""
    epoch = replica.node.leader_epoch
    places = (Endpoint("CONTROLLER", "c4", 9093),)
    requests: dict[ApiKey, Request] = {
        ApiKey.FETCH: replica.fetch(3, 0, 0),
        ApiKey.FETCH_SNAPSHOT: FetchSnapshotRequest(
            cluster_id=CLUSTER_ID,
            replica=key_of(3),
            current_leader_epoch=epoch,
            snapshot_id=OffsetAndEpoch(3, 1),
            position=0,
            max_bytes=1000,
        ),
        ApiKey.VOTE: replica.vote_request(3, epoch + 1),
        ApiKey.BEGIN_QUORUM_EPOCH: BeginQuorumEpochRequest(
            cluster_id=CLUSTER_ID, leader_id=3, leader_epoch=epoch + 1
        ),
        ApiKey.END_QUORUM_EPOCH: EndQuorumEpochRequest(
            cluster_id=CLUSTER_ID, leader_id=3, leader_epoch=epoch + 1, preferred_candidates=()
        ),
        ApiKey.DESCRIBE_QUORUM: DescribeQuorumRequest(),
        ApiKey.ADD_RAFT_VOTER: AddRaftVoterRequest(
            cluster_id=CLUSTER_ID, timeout_ms=900, voter=VOTER, endpoints=places
        ),
        ApiKey.REMOVE_RAFT_VOTER: RemoveRaftVoterRequest(cluster_id=CLUSTER_ID, voter=VOTER),
        ApiKey.UPDATE_RAFT_VOTER: UpdateRaftVoterRequest(
            cluster_id=CLUSTER_ID, current_leader_epoch=epoch, voter=VOTER, endpoints=places
        ),
    }
    return requests[api_key]


class Row(NamedTuple):
    """One of the page's table: `direct` and `enveloped` are what this program's standby answers."""

    kafkas: str
    direct: str
    enveloped: str
    why: str


def table() -> dict[ApiKey, Row]:
    rows = re.findall(r"^\| ([A-Z]\w+) \| (.+) \|$", PAGE.read_text(), flags=re.MULTILINE)
    return {ApiKey[_constant(name)]: Row(*cells.split(" | ")) for name, cells in rows if name != "API"}


def _constant(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper()


def outcome(entity: Any) -> str:
    """As the table says it."""
    top = getattr(entity, "error_code", ErrorCode.none)
    entries = set(_codes_of_entries(entity))
    refused = {code.name.upper() for code in (top, *entries) if code is not ErrorCode.none}
    if not refused:
        return "serves it"
    places = [
        "top level" * (top is not ErrorCode.none),
        "each entry" * bool(entries) * (ErrorCode.none not in entries),
    ]
    return f"{', '.join(sorted(refused))}: {' and '.join(filter(None, places))}"


def _codes_of_entries(value: Any, depth: int = 0) -> Iterator[ErrorCode]:
    if isinstance(value, tuple):
        for each in value:
            yield from _codes_of_entries(each, depth + 1)
    elif is_dataclass(value):
        if depth and hasattr(value, "error_code"):
            yield value.error_code
        else:
            for field in fields(value):
                yield from _codes_of_entries(getattr(value, field.name), depth)


def outcome_of_envelope(envelope: Any, api_key: ApiKey, version: int) -> str:
    if envelope.response_data is None:
        return f"{envelope.error_code.name.upper()}: envelope"
    return outcome(decode_response(api_key, version, envelope.response_data)[1])


class Node:
    """A listener with a real controller and a real replica behind it, which was the leader or never was."""

    def __init__(self, state: str) -> None:
        self.replica = RaftContext(log=[batch(0, 1, 3)])
        self.world = World()
        self.requests = RaftRequests({LEADER: Endpoint("CONTROLLER", "c2", 9093)}, self._receive)
        if state == "resigned":
            epoch = self.replica.become_leader()
            self.world.lead(epoch)
            self.replica.feed(ResignRequested(epoch))
            self.world.follow(-1, epoch)
        elif state == "follower":
            self.replica.follow(LEADER, EPOCH)
            self.world.follow(LEADER, EPOCH)
        elif state == "leader":
            self.world.raft.leader_id = self.world.raft.node_id
            self.replica.become_leader()
        assert self.replica.node.role == state
        assert not self.world.controller.is_active
        self.listener = ControllerListener(
            controller=self.world.controller,
            handle_raft=self.requests.handle,
            now_ms=lambda: self.world.now_ms,
            wake=lambda: None,
            image=lambda: self.world.controller.committed_image,
            node_configs={"delegation.token.secret.key": "secret"},
        )

    def request(self, api_key: ApiKey, version: int) -> Any:
        if api_key in codec.RAFT_APIS:
            return codec.encode_request(quorum_request(api_key, self.replica), version)
        return request_of(api_key, version, VALUES[api_key])

    def ask(self, api_key: ApiKey, version: int, entity: Any) -> Any:
        answers: list[Any] = []
        context = RequestContext(
            1,
            "127.0.0.1",
            "CONTROLLER",
            RequestHeader(api_key, version, 5, "client"),
            "User:alice",
            security_protocol=SASL_PLAINTEXT,
        )
        self.listener.handle(context, as_read(api_key, version, entity), answers.append)
        assert len(answers) == 1, "a standby answers at once"
        (answer,) = answers
        if isinstance(answer, EncodedBody):
            return decode(response_class(api_key, version), answer.data)[0]
        encode_body(answer, version)
        return answer

    def forward(self, api_key: ApiKey, version: int, entity: Any) -> Any:
        warm_version(api_key, version)  # else the answer waits for that
        values = {
            "request_data": encode_request(api_key, version, 99, "client", entity),
            "request_principal": encode_principal("User:alice"),
            "client_host_address": encode_address("10.1.2.3"),
        }
        return self.ask(ApiKey.ENVELOPE, 0, request_of(ApiKey.ENVELOPE, 0, values))

    def _receive(self, event: Input) -> None:
        """The core answers each request in the turn that it comes in, as it does at a standby."""
        self.replica.feed(event)
        for request_id, response in self.replica.responses.items():
            self.requests.respond(OutboundResponse(request_id, response))
        self.replica.responses.clear()


def versions(api_key: ApiKey) -> range:
    lowest, highest = OFFERED[api_key]
    if api_key is ApiKey.DESCRIBE_CLUSTER:
        lowest = 1  # the first that can ask for controllers
    return range(lowest, highest + 1)


def test_the_table_has_a_row_for_each_api_of_a_controller() -> None:
    assert table().keys() == OFFERED.keys() - {ApiKey.ENVELOPE}


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("api_key", sorted(OFFERED.keys() - {ApiKey.ENVELOPE}))
def test_a_node_that_does_not_lead_answers_as_the_table_says(api_key: ApiKey, state: str) -> None:
    row = table()[api_key]
    newest = OFFERED[api_key][1]
    for version in versions(api_key):
        node = Node(state)
        direct = outcome(node.ask(api_key, version, node.request(api_key, version)))
        node = Node(state)
        answer = node.forward(api_key, version, node.request(api_key, version))
        enveloped = outcome_of_envelope(answer, api_key, version)
        if version == newest:
            assert (direct, enveloped) == (row.direct, row.enveloped)
        else:
            assert (_errors_of(direct), enveloped) == (_errors_of(row.direct), row.enveloped), version


def _errors_of(cell: str) -> str:
    return cell.partition(":")[0]


@pytest.mark.parametrize("api_key", sorted(HANDLERS))
def test_a_leader_whose_controller_is_not_active_yet_decides_nothing(api_key: ApiKey) -> None:
    """The replica has won its election, and the controller has yet to apply what was committed before."""
    row, version = table()[api_key], OFFERED[api_key][1]
    node = Node("leader")
    assert outcome(node.ask(api_key, version, node.request(api_key, version))) == row.direct
    answer = node.forward(api_key, version, node.request(api_key, version))
    assert outcome_of_envelope(answer, api_key, version) == row.enveloped


@pytest.mark.parametrize(
    ("api_key", "expected"),
    [
        (ApiKey.DESCRIBE_QUORUM, "serves it"),
        (ApiKey.ADD_RAFT_VOTER, "REQUEST_TIMED_OUT: top level"),
        (ApiKey.REMOVE_RAFT_VOTER, "REQUEST_TIMED_OUT: top level"),
    ],
)
def test_a_leader_whose_controller_is_not_active_yet_answers_for_its_replica(
    api_key: ApiKey, expected: str
) -> None:
    version = OFFERED[api_key][1]
    node = Node("leader")
    assert outcome(node.ask(api_key, version, node.request(api_key, version))) == expected
    answer = node.forward(api_key, version, node.request(api_key, version))
    assert outcome_of_envelope(answer, api_key, version) == expected
