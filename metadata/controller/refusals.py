"""Responses that refuse a request as a whole, by a controller or an authorizer: each API has its own shape."""

from collections.abc import Callable, Mapping

from kquorum.metadata.controller.configs import client_quotas
from kquorum.metadata.controller.configs.alter_configs import config_refusal, incremental_config_refusal
from kquorum.metadata.controller.requests import ApiError, ControllerRequest, messages_of_entries
from kquorum.metadata.controller.security.delegation_tokens import creation_refusal
from kquorum.wire.message_schema import Response
from kquorum.wire.messages.add_raft_voter import AddRaftVoterResponse
from kquorum.wire.messages.allocate_producer_ids import AllocateProducerIdsResponse
from kquorum.wire.messages.alter_partition import AlterPartitionResponse
from kquorum.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from kquorum.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from kquorum.wire.messages.assign_replicas_to_dirs import AssignReplicasToDirsResponse
from kquorum.wire.messages.begin_quorum_epoch import BeginQuorumEpochResponse
from kquorum.wire.messages.broker_heartbeat import BrokerHeartbeatResponse
from kquorum.wire.messages.broker_registration import BrokerRegistrationResponse
from kquorum.wire.messages.controller_registration import ControllerRegistrationResponse
from kquorum.wire.messages.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse
from kquorum.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from kquorum.wire.messages.create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kquorum.wire.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from kquorum.wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from kquorum.wire.messages.describe_acls import DescribeAclsResponse
from kquorum.wire.messages.describe_client_quotas import DescribeClientQuotasResponse
from kquorum.wire.messages.describe_cluster import DescribeClusterResponse
from kquorum.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from kquorum.wire.messages.describe_delegation_token import DescribeDelegationTokenResponse
from kquorum.wire.messages.describe_quorum import DescribeQuorumResponse
from kquorum.wire.messages.describe_user_scram_credentials import DescribeUserScramCredentialsResponse
from kquorum.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from kquorum.wire.messages.end_quorum_epoch import EndQuorumEpochResponse
from kquorum.wire.messages.envelope import EnvelopeResponse
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.expire_delegation_token import ExpireDelegationTokenResponse
from kquorum.wire.messages.fetch import FetchResponse
from kquorum.wire.messages.fetch_snapshot import FetchSnapshotResponse
from kquorum.wire.messages.list_config_resources import ListConfigResourcesResponse
from kquorum.wire.messages.list_partition_reassignments import ListPartitionReassignmentsResponse
from kquorum.wire.messages.remove_raft_voter import RemoveRaftVoterResponse
from kquorum.wire.messages.renew_delegation_token import RenewDelegationTokenResponse
from kquorum.wire.messages.unregister_broker import UnregisterBrokerResponse
from kquorum.wire.messages.update_features import (
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from kquorum.wire.messages.update_raft_voter import UpdateRaftVoterResponse
from kquorum.wire.messages.vote import VoteResponse
from kquorum.wire.protocol.api_keys import ApiKey

_Shape = Callable[[ControllerRequest, ApiError], Response]

RAFT_APIS = frozenset(
    {
        ApiKey.VOTE,
        ApiKey.BEGIN_QUORUM_EPOCH,
        ApiKey.END_QUORUM_EPOCH,
        ApiKey.FETCH,
        ApiKey.FETCH_SNAPSHOT,
        ApiKey.UPDATE_RAFT_VOTER,
    }
)


def refusal(request: ControllerRequest, error: ApiError) -> Response:
    """The response that refuses the whole request, in the shape that its API has for that."""
    return _SHAPES[request.api_key](request, error)


def not_loaded(request: ControllerRequest) -> ApiError:
    """A retriable error for every client: Kafka's replicas stop at other errors."""
    code = ErrorCode.broker_not_available if request.api_key in RAFT_APIS else ErrorCode.not_controller
    reason = "This node has not yet loaded the metadata log, so it does not know who may do what; ask again."
    return ApiError(code, reason)


def topic_refusal(name: str, error: ApiError) -> CreatableTopicResult:
    """An entry of a CreateTopics response."""
    return CreatableTopicResult(name=name, error_code=error.code, error_message=error.message)


def _create_topics(request: ControllerRequest, error: ApiError) -> CreateTopicsResponse:
    body: CreateTopicsRequest = request.body
    names = dict.fromkeys([topic.name for topic in body.topics])
    messages = messages_of_entries(error.message)
    return CreateTopicsResponse(
        topics=tuple(
            [
                CreatableTopicResult(name=name, error_code=error.code, error_message=next(messages))
                for name in names
            ]
        )
    )


def _delete_topics(request: ControllerRequest, error: ApiError) -> DeleteTopicsResponse:
    body: DeleteTopicsRequest = request.body
    messages = messages_of_entries(error.message)
    by_name = [
        DeletableTopicResult(name=name, error_code=error.code, error_message=next(messages))
        for name in body.topic_names
    ]
    by_name_or_id = [
        DeletableTopicResult(
            name=each.name, topic_id=each.topic_id, error_code=error.code, error_message=next(messages)
        )
        for each in body.topics
    ]
    return DeleteTopicsResponse(responses=(*by_name, *by_name_or_id))


def _create_acls(request: ControllerRequest, error: ApiError) -> CreateAclsResponse:
    body: CreateAclsRequest = request.body
    messages = messages_of_entries(error.message)
    return CreateAclsResponse(
        results=tuple(
            [AclCreationResult(error_code=error.code, error_message=next(messages)) for _ in body.creations]
        )
    )


def _delete_acls(request: ControllerRequest, error: ApiError) -> DeleteAclsResponse:
    body: DeleteAclsRequest = request.body
    messages = messages_of_entries(error.message)
    return DeleteAclsResponse(
        filter_results=tuple(
            [
                DeleteAclsFilterResult(error_code=error.code, error_message=next(messages))
                for _ in body.filters
            ]
        )
    )


def _create_partitions(request: ControllerRequest, error: ApiError) -> CreatePartitionsResponse:
    body: CreatePartitionsRequest = request.body
    messages = messages_of_entries(error.message)
    names = dict.fromkeys([topic.name for topic in body.topics])
    return CreatePartitionsResponse(
        results=tuple(
            [
                CreatePartitionsTopicResult(name=name, error_code=error.code, error_message=next(messages))
                for name in names
            ]
        )
    )


def _alter_partition_reassignments(
    request: ControllerRequest, error: ApiError
) -> AlterPartitionReassignmentsResponse:
    """The reason stands beside each partition too, where Kafka's clients look for it."""
    body: AlterPartitionReassignmentsRequest = request.body
    messages = messages_of_entries(error.message)
    responses = [
        ReassignableTopicResponse(
            name=topic.name,
            partitions=tuple(
                [
                    ReassignablePartitionResponse(
                        partition_index=each.partition_index,
                        error_code=error.code,
                        error_message=next(messages),
                    )
                    for each in topic.partitions
                ]
            ),
        )
        for topic in body.topics
    ]
    return AlterPartitionReassignmentsResponse(
        error_code=error.code,
        error_message=error.message,
        allow_replication_factor_change=body.allow_replication_factor_change,
        responses=tuple(responses),
    )


def _elect_leaders(request: ControllerRequest, error: ApiError) -> ElectLeadersResponse:
    body: ElectLeadersRequest = request.body
    messages = messages_of_entries(error.message)
    results = [
        ReplicaElectionResult(
            topic=each.topic,
            partition_result=tuple(
                [
                    PartitionResult(partition_id=one, error_code=error.code, error_message=next(messages))
                    for one in each.partitions
                ]
            ),
        )
        for each in body.topic_partitions or ()
    ]
    return ElectLeadersResponse(error_code=error.code, replica_election_results=tuple(results))


def _update_features(request: ControllerRequest, error: ApiError) -> UpdateFeaturesResponse:
    """Up to version 1 the reason also stands beside each feature, where Kafka's older tools look for it."""
    body: UpdateFeaturesRequest = request.body
    messages = messages_of_entries(error.message)
    results = [
        UpdatableFeatureResult(feature=update.feature, error_code=error.code, error_message=next(messages))
        for update in body.feature_updates
    ]
    return UpdateFeaturesResponse(error_code=error.code, error_message=error.message, results=tuple(results))


def _alter_user_scram_credentials(
    request: ControllerRequest, error: ApiError
) -> AlterUserScramCredentialsResponse:
    body: AlterUserScramCredentialsRequest = request.body
    deleted = [deletion.name for deletion in body.deletions]
    messages = messages_of_entries(error.message)
    users = dict.fromkeys([*deleted, *[upsertion.name for upsertion in body.upsertions]])
    return AlterUserScramCredentialsResponse(
        results=tuple(
            [
                AlterUserScramCredentialsResult(
                    user=user, error_code=error.code, error_message=next(messages)
                )
                for user in users
            ]
        )
    )


def _describe_configs(request: ControllerRequest, error: ApiError) -> DescribeConfigsResponse:
    body: DescribeConfigsRequest = request.body
    messages = messages_of_entries(error.message)
    return DescribeConfigsResponse(
        results=tuple(
            [
                DescribeConfigsResult(
                    error_code=error.code,
                    error_message=next(messages),
                    resource_type=asked.resource_type,
                    resource_name=asked.resource_name,
                )
                for asked in body.resources
            ]
        )
    )


def _broker_registration(_request: ControllerRequest, error: ApiError) -> BrokerRegistrationResponse:
    return BrokerRegistrationResponse(error_code=error.code, session_ends_in_ms=error.ends_in_ms)


def _with_code(response: Callable[..., Response]) -> _Shape:
    return lambda _request, error: response(error_code=error.code)


def _with_message(response: Callable[..., Response], **others: object) -> _Shape:
    return lambda _request, error: response(error_code=error.code, error_message=error.message, **others)


_SHAPES: Mapping[ApiKey, _Shape] = {
    ApiKey.CREATE_TOPICS: _create_topics,
    ApiKey.DELETE_TOPICS: _delete_topics,
    ApiKey.CREATE_PARTITIONS: _create_partitions,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: _alter_partition_reassignments,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: _with_message(ListPartitionReassignmentsResponse),
    ApiKey.ELECT_LEADERS: _elect_leaders,
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: _with_code(AssignReplicasToDirsResponse),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: incremental_config_refusal,
    ApiKey.ALTER_CONFIGS: config_refusal,
    ApiKey.ALTER_PARTITION: _with_code(AlterPartitionResponse),
    ApiKey.BROKER_REGISTRATION: _broker_registration,
    ApiKey.BROKER_HEARTBEAT: _with_code(BrokerHeartbeatResponse),
    ApiKey.CREATE_ACLS: _create_acls,
    ApiKey.DELETE_ACLS: _delete_acls,
    ApiKey.CREATE_DELEGATION_TOKEN: creation_refusal,
    ApiKey.RENEW_DELEGATION_TOKEN: _with_code(RenewDelegationTokenResponse),
    ApiKey.EXPIRE_DELEGATION_TOKEN: _with_code(ExpireDelegationTokenResponse),
    ApiKey.ALLOCATE_PRODUCER_IDS: _with_code(AllocateProducerIdsResponse),
    ApiKey.UNREGISTER_BROKER: _with_message(UnregisterBrokerResponse),
    ApiKey.CONTROLLER_REGISTRATION: _with_message(ControllerRegistrationResponse),
    ApiKey.DESCRIBE_CLUSTER: _with_message(DescribeClusterResponse),
    ApiKey.UPDATE_FEATURES: _update_features,
    ApiKey.ALTER_CLIENT_QUOTAS: client_quotas.refusals,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: _alter_user_scram_credentials,
    # Changes of the voters are the replica's to make; a broker refuses them when no controller can be reached.
    ApiKey.ADD_RAFT_VOTER: _with_message(AddRaftVoterResponse),
    ApiKey.REMOVE_RAFT_VOTER: _with_message(RemoveRaftVoterResponse),
    # Answered by any node from its image.
    ApiKey.DESCRIBE_ACLS: _with_message(DescribeAclsResponse),
    ApiKey.DESCRIBE_CONFIGS: _describe_configs,
    ApiKey.LIST_CONFIG_RESOURCES: _with_code(ListConfigResourcesResponse),
    ApiKey.DESCRIBE_DELEGATION_TOKEN: _with_code(DescribeDelegationTokenResponse),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: _with_message(DescribeClientQuotasResponse, entries=None),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: _with_message(DescribeUserScramCredentialsResponse),
    # The requests between replicas, and the envelope.
    ApiKey.UPDATE_RAFT_VOTER: _with_code(UpdateRaftVoterResponse),
    ApiKey.ENVELOPE: _with_code(EnvelopeResponse),
    ApiKey.VOTE: _with_code(VoteResponse),
    ApiKey.BEGIN_QUORUM_EPOCH: _with_code(BeginQuorumEpochResponse),
    ApiKey.END_QUORUM_EPOCH: _with_code(EndQuorumEpochResponse),
    ApiKey.FETCH: _with_code(FetchResponse),
    ApiKey.FETCH_SNAPSHOT: _with_code(FetchSnapshotResponse),
    ApiKey.DESCRIBE_QUORUM: _with_message(DescribeQuorumResponse),
}
