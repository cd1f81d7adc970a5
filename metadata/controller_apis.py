"""The APIs of a controller's listener: for each one line, which says how it is answered and what it takes.

Kafka's ControllerApis, and of its KafkaApis what is answered from the metadata image. Some lines are used at brokers
too: a broker forwards what is forwardable, and answers the questions by itself (`broker.apis.registry`).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

from kquorum.metadata.authorizer.authorization import Authorization, on_cluster
from kquorum.metadata.authorizer.cluster_rules import judge_describe_cluster
from kquorum.metadata.authorizer.codes import Operation
from kquorum.metadata.authorizer.config_rules import (
    judge_alter_configs,
    judge_describe_configs,
    judge_describe_configs_in_slices,
    judge_incremental_alter_configs,
)
from kquorum.metadata.authorizer.token_rules import (
    judge_create_token,
    judge_describe_tokens,
    judge_token_request,
)
from kquorum.metadata.authorizer.topic_rules import (
    judge_create_partitions,
    judge_create_topics,
    judge_delete_topics,
)
from kquorum.metadata.controller.brokers.heartbeat import heartbeat
from kquorum.metadata.controller.brokers.producer_ids import allocate_producer_ids
from kquorum.metadata.controller.brokers.registration import (
    register_broker,
    register_controller,
    unregister_broker,
)
from kquorum.metadata.controller.configs.alter_configs import alter_configs, incremental_alter_configs
from kquorum.metadata.controller.configs.client_quotas import alter_client_quotas
from kquorum.metadata.controller.context import DecisionContext
from kquorum.metadata.controller.partitions.alter_partition import alter_partition
from kquorum.metadata.controller.partitions.assign_directories import assign_replicas_to_directories
from kquorum.metadata.controller.partitions.elect_leaders import elect_leaders
from kquorum.metadata.controller.partitions.reassignments import (
    alter_partition_reassignments,
    list_partition_reassignments,
)
from kquorum.metadata.controller.quorum.features import update_features
from kquorum.metadata.controller.requests import ControllerRequest
from kquorum.metadata.controller.results import ControllerResult
from kquorum.metadata.controller.security.acls import create_acls, delete_acls
from kquorum.metadata.controller.security.delegation_tokens import (
    create_delegation_token,
    expire_delegation_token,
    renew_delegation_token,
)
from kquorum.metadata.controller.security.scram import alter_user_scram_credentials
from kquorum.metadata.controller.topics.create_partitions import create_partitions
from kquorum.metadata.controller.topics.create_topics import create_topics
from kquorum.metadata.controller.topics.delete_topics import delete_topics
from kquorum.metadata.describe.acls import describe_acls
from kquorum.metadata.describe.client_quotas import describe_client_quotas
from kquorum.metadata.describe.configs import describe_configs, list_config_resources
from kquorum.metadata.describe.delegation_tokens import describe_delegation_token
from kquorum.metadata.describe.describe_request import DescribeRequest
from kquorum.metadata.describe.scram import describe_user_scram_credentials
from kquorum.metadata.describe.slices import Elements, encoded_in_slices
from kquorum.metadata.image.image import MetadataImage
from kquorum.wire.message_schema import Response
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.headers import EncodedBody

Handler = Callable[[DecisionContext, ControllerRequest], ControllerResult]
Reader = Callable[[MetadataImage, ControllerRequest], Response]
Describer = Callable[[DescribeRequest], Response]
# Of what is allowed of a request, and the entries of the answer that refuse the rest: None after each slice, and last
# the answer.
Slices = Callable[[DescribeRequest, Sequence[Any]], Iterator[EncodedBody | None]]


class EntryLimit(IntEnum):
    """How many entries one request of an API may have (metadata.adapters.request_bounds), in multiples of
    `kquorum.request.max.entries`; NONE is for requests between nodes, which no client can send."""

    NONE = 0
    USUAL = 1
    # Kafka's tools send these requests undivided.
    UNDIVIDED = 10


@dataclass(frozen=True, slots=True)
class ControllerApi:
    """One API. `is_forwardable`: a broker may send it in an Envelope on behalf of a client (KIP-590)."""

    api_key: ApiKey
    authorization: Authorization
    is_forwardable: bool = False
    entry_limit: EntryLimit = EntryLimit.NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision(ControllerApi):
    """The active controller decides it; a standby answers NOT_CONTROLLER."""

    decide: Handler


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading(ControllerApi):
    """The controller reads the answer from the committed image, on a standby too; brokers forward it."""

    read: Reader


@dataclass(frozen=True, slots=True, kw_only=True)
class Question(ControllerApi):
    """Every node answers it from its own committed image, a broker too."""

    describe: Describer


@dataclass(frozen=True, slots=True, kw_only=True)
class SlicedQuestion(ControllerApi):
    """As a Question, for an answer that may take long: the request is judged in slices, and so is the answer made."""

    slices: Slices


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterQuestion(ControllerApi):
    """DescribeCluster: the controller answers it from the committed image and from what it knows of the leader."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumRequest(ControllerApi):
    """The replica of the metadata log answers it, in the versions of its codec. `note` begins the audit note of a
    change of the voters."""

    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardedRequest(ControllerApi):
    """Envelope: the request inside has a line of its own."""


def _administration(
    api_key: ApiKey,
    authorization: Authorization,
    decide: Handler,
    entry_limit: EntryLimit = EntryLimit.USUAL,
) -> Decision:
    """Clients ask for it, mostly by way of a broker."""
    return Decision(api_key, authorization, is_forwardable=True, entry_limit=entry_limit, decide=decide)


def _question(
    api_key: ApiKey, authorization: Authorization, describe: Callable[[DescribeRequest], Response | Elements]
) -> SlicedQuestion:
    """Its answer is as long as the cluster has such things; all of a request is allowed, or nothing."""

    def slices(question: DescribeRequest, _refused: Sequence[Any]) -> Iterator[EncodedBody | None]:
        return encoded_in_slices(describe(question), question.version, question.note_made)

    return SlicedQuestion(api_key, authorization, entry_limit=EntryLimit.USUAL, slices=slices)


_CLUSTER_ACTION: Final = on_cluster(Operation.CLUSTER_ACTION)
_OF_VOTERS: Final = on_cluster(Operation.CLUSTER_ACTION, is_for_voters=True)
_DESCRIBE: Final = on_cluster(Operation.DESCRIBE)
_DESCRIBE_CONFIGS: Final = on_cluster(Operation.DESCRIBE_CONFIGS)
_ALTER: Final = on_cluster(Operation.ALTER)
_ALTER_ENTRIES: Final = on_cluster(Operation.ALTER, needs_body=True)
_ALTER_CONFIGS_ENTRIES: Final = on_cluster(Operation.ALTER_CONFIGS, needs_body=True)
_CREATE_TOKEN: Final = Authorization(rule=judge_create_token, needs_authorizer=False)
_TOKEN: Final = Authorization(rule=judge_token_request, needs_authorizer=False)

_LINES: Final[tuple[ControllerApi, ...]] = (
    # Voters send these to each other.
    QuorumRequest(ApiKey.VOTE, _OF_VOTERS),
    QuorumRequest(ApiKey.BEGIN_QUORUM_EPOCH, _OF_VOTERS),
    QuorumRequest(ApiKey.END_QUORUM_EPOCH, _OF_VOTERS),
    QuorumRequest(ApiKey.UPDATE_RAFT_VOTER, _OF_VOTERS),
    # Observers, such as brokers, send these too.
    QuorumRequest(ApiKey.FETCH, _CLUSTER_ACTION),
    QuorumRequest(ApiKey.FETCH_SNAPSHOT, _CLUSTER_ACTION),
    # Administrators send these to the quorum, or to a broker.
    QuorumRequest(ApiKey.DESCRIBE_QUORUM, _DESCRIBE, is_forwardable=True, entry_limit=EntryLimit.USUAL),
    QuorumRequest(
        ApiKey.ADD_RAFT_VOTER, _ALTER, is_forwardable=True, entry_limit=EntryLimit.USUAL, note="add voter"
    ),
    QuorumRequest(
        ApiKey.REMOVE_RAFT_VOTER,
        _ALTER,
        is_forwardable=True,
        entry_limit=EntryLimit.USUAL,
        note="remove voter",
    ),
    # Brokers and controllers send these to the active controller.
    ForwardedRequest(ApiKey.ENVELOPE, _CLUSTER_ACTION),
    Decision(ApiKey.BROKER_REGISTRATION, _CLUSTER_ACTION, decide=register_broker),
    Decision(ApiKey.BROKER_HEARTBEAT, _CLUSTER_ACTION, decide=heartbeat),
    Decision(ApiKey.CONTROLLER_REGISTRATION, _CLUSTER_ACTION, decide=register_controller),
    Decision(ApiKey.ALTER_PARTITION, _CLUSTER_ACTION, decide=alter_partition),
    Decision(ApiKey.ASSIGN_REPLICAS_TO_DIRS, _CLUSTER_ACTION, decide=assign_replicas_to_directories),
    Decision(ApiKey.ALLOCATE_PRODUCER_IDS, _CLUSTER_ACTION, decide=allocate_producer_ids),
    # Administrators send these.
    _administration(ApiKey.CREATE_TOPICS, Authorization(rule=judge_create_topics), create_topics),
    _administration(ApiKey.DELETE_TOPICS, Authorization(rule=judge_delete_topics), delete_topics),
    _administration(ApiKey.CREATE_PARTITIONS, Authorization(rule=judge_create_partitions), create_partitions),
    _administration(ApiKey.ALTER_CONFIGS, Authorization(rule=judge_alter_configs), alter_configs),
    _administration(
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        Authorization(rule=judge_incremental_alter_configs),
        incremental_alter_configs,
    ),
    _administration(
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        _ALTER_ENTRIES,
        alter_partition_reassignments,
        # kafka-reassign-partitions names all partitions that move; the controller decides the request in parts.
        EntryLimit.UNDIVIDED,
    ),
    _administration(ApiKey.ELECT_LEADERS, _ALTER_ENTRIES, elect_leaders),
    _administration(ApiKey.UNREGISTER_BROKER, _ALTER, unregister_broker),
    _administration(ApiKey.UPDATE_FEATURES, _ALTER_ENTRIES, update_features),
    _administration(ApiKey.CREATE_ACLS, _ALTER_ENTRIES, create_acls),
    _administration(ApiKey.DELETE_ACLS, _ALTER_ENTRIES, delete_acls),
    _administration(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, _ALTER_ENTRIES, alter_user_scram_credentials),
    _administration(ApiKey.ALTER_CLIENT_QUOTAS, _ALTER_CONFIGS_ENTRIES, alter_client_quotas),
    _administration(ApiKey.CREATE_DELEGATION_TOKEN, _CREATE_TOKEN, create_delegation_token),
    _administration(ApiKey.RENEW_DELEGATION_TOKEN, _TOKEN, renew_delegation_token),
    _administration(ApiKey.EXPIRE_DELEGATION_TOKEN, _TOKEN, expire_delegation_token),
    Reading(
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        _DESCRIBE,
        is_forwardable=True,
        entry_limit=EntryLimit.USUAL,
        read=list_partition_reassignments,
    ),
    # Questions. DescribeCluster is judged without an authorizer too: its answer says what the client may do.
    ClusterQuestion(
        ApiKey.DESCRIBE_CLUSTER, Authorization(rule=judge_describe_cluster, needs_authorizer=False)
    ),
    _question(ApiKey.DESCRIBE_ACLS, _DESCRIBE, describe_acls),
    _question(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, _DESCRIBE, describe_user_scram_credentials),
    SlicedQuestion(
        ApiKey.DESCRIBE_CONFIGS,
        Authorization(rule=judge_describe_configs, slices=judge_describe_configs_in_slices),
        entry_limit=EntryLimit.USUAL,
        slices=describe_configs,
    ),
    _question(ApiKey.DESCRIBE_CLIENT_QUOTAS, _DESCRIBE_CONFIGS, describe_client_quotas),
    _question(ApiKey.LIST_CONFIG_RESOURCES, _DESCRIBE_CONFIGS, list_config_resources),
    Question(
        ApiKey.DESCRIBE_DELEGATION_TOKEN,
        Authorization(rule=judge_describe_tokens, needs_authorizer=False),
        entry_limit=EntryLimit.USUAL,
        describe=describe_delegation_token,
    ),
)
CONTROLLER_APIS: Final[Mapping[ApiKey, ControllerApi]] = {api.api_key: api for api in _LINES}
assert len(CONTROLLER_APIS) == len(_LINES), "an API stands in the registry twice"

# Parts of it, by kind.
HANDLERS: Final[Mapping[ApiKey, Handler]] = {
    api.api_key: api.decide for api in _LINES if isinstance(api, Decision)
}
READERS: Final[Mapping[ApiKey, Reader]] = {
    api.api_key: api.read for api in _LINES if isinstance(api, Reading)
}
QUESTIONS: Final[Mapping[ApiKey, Question | SlicedQuestion]] = {
    api.api_key: api for api in _LINES if isinstance(api, Question | SlicedQuestion)
}
FORWARDABLE_APIS: Final = frozenset(api.api_key for api in _LINES if api.is_forwardable)
# A broker forwards these, and the replica answers them: with NOT_LEADER_OR_FOLLOWER where the controller would say
# NOT_CONTROLLER.
REPLICAS_APIS: Final = frozenset(
    api.api_key for api in _LINES if isinstance(api, QuorumRequest) and api.is_forwardable
)
