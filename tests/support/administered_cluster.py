"""A broker that keeps what administrators change: topics, moves, ACLs, SCRAM users, quotas, tokens and configs."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from kquorum.wire.messages.alter_client_quotas import (
    AlterClientQuotasResponse,
    ResponseEntityData,
    ResponseEntryData,
)
from kquorum.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from kquorum.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from kquorum.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from kquorum.wire.messages.create_acls import AclCreationResult, CreateAclsResponse
from kquorum.wire.messages.create_delegation_token import CreateDelegationTokenResponse
from kquorum.wire.messages.create_partitions import CreatePartitionsResponse, CreatePartitionsTopicResult
from kquorum.wire.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsResponse,
)
from kquorum.wire.messages.describe_acls import AclDescription, DescribeAclsResource, DescribeAclsResponse
from kquorum.wire.messages.describe_client_quotas import (
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)
from kquorum.wire.messages.describe_cluster import DescribeClusterBroker, DescribeClusterResponse
from kquorum.wire.messages.describe_configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from kquorum.wire.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribeDelegationTokenResponse,
)
from kquorum.wire.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from kquorum.wire.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from kquorum.wire.messages.elect_leaders import ElectLeadersResponse, PartitionResult, ReplicaElectionResult
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.expire_delegation_token import ExpireDelegationTokenResponse
from kquorum.wire.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)
from kquorum.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from kquorum.wire.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kquorum.wire.messages.renew_delegation_token import RenewDelegationTokenResponse
from kquorum.wire.messages.unregister_broker import UnregisterBrokerResponse
from kquorum.wire.protocol.apis import ApiKey
from tests.support.fake_nodes import FakeNode

Place = tuple[str, int]
DIRECTORIES = ("/disk1", "/disk2")
_DELETE = 1


@dataclass
class AdministeredCluster:
    """All brokers have the address of the one node. `refusals` has the error for what is changed next, by place or
    name; `sizes` the bytes of a partition's log, which every broker has in its first directory."""

    brokers: dict[int, str | None] = field(default_factory=lambda: {11: "a", 12: "b", 13: "c"})
    fenced: set[int] = field(default_factory=set)
    replicas: dict[Place, tuple[int, ...]] = field(default_factory=dict)
    leaders: dict[Place, int] = field(default_factory=dict)
    isr: dict[Place, tuple[int, ...]] = field(default_factory=dict)
    moving: dict[Place, tuple[tuple[int, ...], tuple[int, ...]]] = field(default_factory=dict)
    configs: dict[tuple[int, str], dict[str, str]] = field(default_factory=dict)
    acls: list[tuple[object, ...]] = field(default_factory=list)
    users: dict[tuple[str, int], Any] = field(default_factory=dict)
    quotas: dict[tuple[tuple[str, str | None], ...], dict[str, float]] = field(default_factory=dict)
    tokens: dict[str, int] = field(default_factory=dict)
    sizes: dict[Place, int] = field(default_factory=dict)
    directories: dict[Place, str] = field(default_factory=dict)
    refusals: dict[object, tuple[ErrorCode, str]] = field(default_factory=dict)
    looks_until_moved: int = 1_000_000

    @contextmanager
    def served(self) -> Iterator[FakeNode]:
        self.node = FakeNode(self._answers())
        self.node.start()
        try:
            yield self.node
        finally:
            self.node.stop()

    def _answers(self) -> Mapping[ApiKey, Callable[[Any], Any]]:
        return {
            ApiKey.METADATA: self._metadata,
            ApiKey.DESCRIBE_CLUSTER: self._describe_cluster,
            ApiKey.CREATE_PARTITIONS: self._create_partitions,
            ApiKey.ALTER_PARTITION_REASSIGNMENTS: self._reassign,
            ApiKey.LIST_PARTITION_REASSIGNMENTS: self._list_reassignments,
            ApiKey.ELECT_LEADERS: self._elect,
            ApiKey.DESCRIBE_LOG_DIRS: self._log_dirs,
            ApiKey.ALTER_REPLICA_LOG_DIRS: self._move,
            ApiKey.DESCRIBE_CONFIGS: self._describe_configs,
            ApiKey.INCREMENTAL_ALTER_CONFIGS: self._alter_configs,
            ApiKey.DESCRIBE_ACLS: self._describe_acls,
            ApiKey.CREATE_ACLS: self._create_acls,
            ApiKey.DELETE_ACLS: self._delete_acls,
            ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: self._describe_users,
            ApiKey.ALTER_USER_SCRAM_CREDENTIALS: self._alter_users,
            ApiKey.DESCRIBE_CLIENT_QUOTAS: self._describe_quotas,
            ApiKey.ALTER_CLIENT_QUOTAS: self._alter_quotas,
            ApiKey.DESCRIBE_DELEGATION_TOKEN: self._describe_tokens,
            ApiKey.CREATE_DELEGATION_TOKEN: self._create_token,
            ApiKey.RENEW_DELEGATION_TOKEN: self._renew_token,
            ApiKey.EXPIRE_DELEGATION_TOKEN: self._expire_token,
            ApiKey.UNREGISTER_BROKER: self._unregister,
        }

    def _error(self, key: object) -> dict[str, Any]:
        code, message = self.refusals.get(key, (ErrorCode.none, None))
        return {"error_code": code, "error_message": message}

    def asked(self, name: str) -> list[Any]:
        """The requests of this class that came."""
        return [each for each in self.node.requests if type(each).__name__ == name]

    # The cluster and its topics

    def _metadata(self, request: Any) -> MetadataResponse:
        there = list(dict.fromkeys(topic for topic, _ in self.replicas))
        names = there if request.topics is None else [each.name for each in request.topics]
        return MetadataResponse(
            brokers=tuple(
                MetadataResponseBroker(node_id=each, host="127.0.0.1", port=self.node.port, rack=rack)
                for each, rack in self.brokers.items()
                if each not in self.fenced
            ),
            topics=tuple(
                MetadataResponseTopic(
                    error_code=ErrorCode.none if name in there else ErrorCode.unknown_topic_or_partition,
                    name=name,
                    partitions=tuple(
                        MetadataResponsePartition(
                            partition_index=index,
                            leader_id=self.leaders.get((topic, index), replicas[0]),
                            replica_nodes=self._present(topic, index),
                            isr_nodes=self.isr.get((topic, index), replicas),
                        )
                        for (topic, index), replicas in self.replicas.items()
                        if topic == name
                    ),
                )
                for name in names
            ),
        )

    def _present(self, topic: str, index: int) -> tuple[int, ...]:
        """With the replicas that are on their way, as Kafka answers."""
        before, after = self.moving.get((topic, index), ((), ()))
        return tuple(dict.fromkeys((*after, *before))) or self.replicas[topic, index]

    def _describe_cluster(self, request: Any) -> DescribeClusterResponse:
        return DescribeClusterResponse(
            cluster_id="c",
            brokers=tuple(
                DescribeClusterBroker(broker_id=each, host="127.0.0.1", port=1, is_fenced=each in self.fenced)
                for each in self.brokers
                if request.include_fenced_brokers or each not in self.fenced
            ),
        )

    def _unregister(self, request: Any) -> UnregisterBrokerResponse:
        if self.brokers.pop(request.broker_id, 0) == 0:
            return UnregisterBrokerResponse(error_code=ErrorCode.broker_id_not_registered)
        return UnregisterBrokerResponse(error_message=None)

    def _create_partitions(self, request: Any) -> CreatePartitionsResponse:
        results = []
        for topic in request.topics:
            error = self._error(topic.name)
            results.append(CreatePartitionsTopicResult(name=topic.name, **error))
            if error["error_code"] is ErrorCode.none and not request.validate_only:
                for index in range(topic.count):
                    self.replicas.setdefault((topic.name, index), (11,))
        return CreatePartitionsResponse(results=tuple(results))

    def _elect(self, request: Any) -> ElectLeadersResponse:
        results = []
        for topic in request.topic_partitions:
            entries = []
            for index in topic.partitions:
                error = self._error((topic.topic, index))
                entries.append(PartitionResult(partition_id=index, **error))
                if error["error_code"] is ErrorCode.none:
                    self.leaders[topic.topic, index] = self.replicas[topic.topic, index][0]
            results.append(ReplicaElectionResult(topic=topic.topic, partition_result=tuple(entries)))
        return ElectLeadersResponse(replica_election_results=tuple(results))

    # Moves

    def _reassign(self, request: Any) -> AlterPartitionReassignmentsResponse:
        topics = []
        for topic in request.topics:
            entries = []
            for each in topic.partitions:
                place = topic.name, each.partition_index
                error = self._error(place)
                entries.append(ReassignablePartitionResponse(partition_index=each.partition_index, **error))
                if error["error_code"] is not ErrorCode.none:
                    continue
                if each.replicas is None:
                    before, _ = self.moving.pop(place)
                    self.replicas[place] = before
                else:
                    self.moving[place] = (self.replicas[place], each.replicas)
            topics.append(ReassignableTopicResponse(name=topic.name, partitions=tuple(entries)))
        return AlterPartitionReassignmentsResponse(responses=tuple(topics), error_message=None)

    def _list_reassignments(self, _: Any) -> ListPartitionReassignmentsResponse:
        self.looks_until_moved -= 1
        if self.looks_until_moved <= 0:
            for place, (_before, after) in self.moving.items():
                self.replicas[place] = after
            self.moving.clear()
        return ListPartitionReassignmentsResponse(
            error_message=None,
            topics=tuple(
                OngoingTopicReassignment(
                    name=topic,
                    partitions=(
                        OngoingPartitionReassignment(
                            partition_index=index,
                            replicas=tuple(dict.fromkeys((*after, *before))),
                            adding_replicas=tuple(each for each in after if each not in before),
                            removing_replicas=tuple(each for each in before if each not in after),
                        ),
                    ),
                )
                for (topic, index), (before, after) in self.moving.items()
            ),
        )

    def _log_dirs(self, request: Any) -> DescribeLogDirsResponse:
        def logs(path: str) -> tuple[DescribeLogDirsTopic, ...]:
            return tuple(
                DescribeLogDirsTopic(
                    name=topic,
                    partitions=(DescribeLogDirsPartition(partition_index=index, partition_size=size),),
                )
                for (topic, index), size in self.sizes.items()
                if self.directories.get((topic, index), DIRECTORIES[0]) == path
            )

        return DescribeLogDirsResponse(
            results=tuple(
                DescribeLogDirsResult(log_dir=path, topics=logs(path), total_bytes=1000, usable_bytes=400)
                for path in DIRECTORIES
            )
        )

    def _move(self, request: Any) -> AlterReplicaLogDirsResponse:
        results = []
        for directory in request.dirs:
            for topic in directory.topics:
                for index in topic.partitions:
                    code = self._error((topic.name, index))["error_code"]
                    entry = AlterReplicaLogDirPartitionResult(partition_index=index, error_code=code)
                    results.append(AlterReplicaLogDirTopicResult(topic_name=topic.name, partitions=(entry,)))
                    if code is ErrorCode.none:
                        self.directories[topic.name, index] = directory.path
        return AlterReplicaLogDirsResponse(results=tuple(results))

    # Configs

    def _describe_configs(self, request: Any) -> DescribeConfigsResponse:
        return DescribeConfigsResponse(
            results=tuple(
                DescribeConfigsResult(
                    resource_type=each.resource_type,
                    resource_name=each.resource_name,
                    error_message=None,
                    configs=tuple(
                        DescribeConfigsResourceResult(
                            name=key, value=value, config_source=1 if each.resource_type == 2 else 2
                        )
                        for key, value in self.configs.get(
                            (each.resource_type, each.resource_name), {}
                        ).items()
                        if each.configuration_keys is None or key in each.configuration_keys
                    ),
                )
                for each in request.resources
            )
        )

    def _alter_configs(self, request: Any) -> IncrementalAlterConfigsResponse:
        refused = {
            each.resource_name: self._error((each.resource_name, "config")) for each in request.resources
        }
        for resource in request.resources:
            there = self.configs.setdefault((resource.resource_type, resource.resource_name), {})
            if refused[resource.resource_name]["error_code"] is not ErrorCode.none:
                continue
            for each in resource.configs:
                if each.config_operation == _DELETE:
                    there.pop(each.name, None)
                else:
                    there[each.name] = each.value
        return IncrementalAlterConfigsResponse(
            responses=tuple(
                AlterConfigsResourceResponse(
                    resource_type=each.resource_type,
                    resource_name=each.resource_name,
                    **refused[each.resource_name],
                )
                for each in request.resources
            )
        )

    @property
    def throttles(self) -> dict[tuple[int, str], dict[str, str]]:
        return {resource: values for resource, values in self.configs.items() if values}

    # ACLs: (resource type, name, pattern, principal, host, operation, permission)

    def _matching(self, asked: Any) -> list[tuple[object, ...]]:
        wanted = (
            asked.resource_type_filter,
            asked.resource_name_filter,
            asked.pattern_type_filter,
            asked.principal_filter,
            asked.host_filter,
            asked.operation,
            asked.permission_type,
        )
        return [acl for acl in self.acls if _fits(wanted, acl)]

    def _describe_acls(self, request: Any) -> DescribeAclsResponse:
        return DescribeAclsResponse(
            error_message=None,
            resources=tuple(
                DescribeAclsResource(
                    resource_type=acl[0],
                    resource_name=acl[1],
                    pattern_type=acl[2],
                    acls=(
                        AclDescription(
                            principal=acl[3], host=acl[4], operation=acl[5], permission_type=acl[6]
                        ),
                    ),
                )
                for acl in map(_as_any, self._matching(request))
            ),
        )

    def _create_acls(self, request: Any) -> CreateAclsResponse:
        results = []
        for each in request.creations:
            error = self._error(each.principal)
            results.append(AclCreationResult(**error))
            if error["error_code"] is ErrorCode.none:
                self.acls.append(
                    (
                        each.resource_type,
                        each.resource_name,
                        each.resource_pattern_type,
                        each.principal,
                        each.host,
                        each.operation,
                        each.permission_type,
                    )
                )
        return CreateAclsResponse(results=tuple(results))

    def _delete_acls(self, request: Any) -> DeleteAclsResponse:
        results = []
        for each in request.filters:
            found = self._matching(each)
            self.acls = [acl for acl in self.acls if acl not in found]
            results.append(
                DeleteAclsFilterResult(
                    error_message=None,
                    matching_acls=tuple(
                        DeleteAclsMatchingAcl(
                            error_message=None,
                            resource_type=acl[0],
                            resource_name=acl[1],
                            pattern_type=acl[2],
                            principal=acl[3],
                            host=acl[4],
                            operation=acl[5],
                            permission_type=acl[6],
                        )
                        for acl in map(_as_any, found)
                    ),
                )
            )
        return DeleteAclsResponse(filter_results=tuple(results))

    # Users

    def _describe_users(self, request: Any) -> DescribeUserScramCredentialsResponse:
        names = {name for name, _ in self.users}
        asked = sorted(names) if request.users is None else [each.name for each in request.users]
        return DescribeUserScramCredentialsResponse(
            error_message=None,
            results=tuple(
                DescribeUserScramCredentialsResult(
                    user=name,
                    error_code=ErrorCode.none if name in names else ErrorCode.resource_not_found,
                    error_message=None if name in names else "no such user",
                    credential_infos=tuple(
                        CredentialInfo(mechanism=mechanism, iterations=each.iterations)
                        for (user, mechanism), each in self.users.items()
                        if user == name
                    ),
                )
                for name in asked
            ),
        )

    def _alter_users(self, request: Any) -> AlterUserScramCredentialsResponse:
        for each in request.upsertions:
            self.users[each.name, each.mechanism] = each
        for each in request.deletions:
            del self.users[each.name, each.mechanism]
        return AlterUserScramCredentialsResponse(
            results=tuple(
                AlterUserScramCredentialsResult(user=each.name, error_message=None)
                for each in (*request.upsertions, *request.deletions)
            )
        )

    # Quotas

    def _describe_quotas(self, request: Any) -> DescribeClientQuotasResponse:
        wanted = {each.entity_type: each.match for each in request.components}
        return DescribeClientQuotasResponse(
            error_message=None,
            entries=tuple(
                EntryData(
                    entity=tuple(EntityData(entity_type=kind, entity_name=name) for kind, name in entity),
                    values=tuple(ValueData(key=key, value=value) for key, value in values.items()),
                )
                for entity, values in self.quotas.items()
                if wanted.items() <= dict(entity).items()
                and (not request.strict or wanted.keys() == dict(entity).keys())
            ),
        )

    def _alter_quotas(self, request: Any) -> AlterClientQuotasResponse:
        entries = []
        for each in request.entries:
            entity = tuple((part.entity_type, part.entity_name) for part in each.entity)
            error = self._error(entity)
            data = tuple(ResponseEntityData(entity_type=kind, entity_name=name) for kind, name in entity)
            entries.append(ResponseEntryData(entity=data, **error))
            if error["error_code"] is not ErrorCode.none or request.validate_only:
                continue
            values = self.quotas.setdefault(entity, {})
            for operation in each.ops:
                if operation.remove:
                    del values[operation.key]
                else:
                    values[operation.key] = operation.value
            if not values:
                del self.quotas[entity]
        return AlterClientQuotasResponse(entries=tuple(entries))

    # Tokens: id -> when it expires; the HMAC is the id

    def _describe_tokens(self, _: Any) -> DescribeDelegationTokenResponse:
        return DescribeDelegationTokenResponse(
            error_code=self._error("tokens")["error_code"],
            tokens=tuple(
                DescribedDelegationToken(
                    principal_type="User",
                    principal_name="alice",
                    token_id=name,
                    hmac=name.encode(),
                    expiry_timestamp=expires_ms,
                )
                for name, expires_ms in self.tokens.items()
            ),
        )

    def _create_token(self, request: Any) -> CreateDelegationTokenResponse:
        code = self._error("tokens")["error_code"]
        if code is ErrorCode.none:
            self.tokens["t"] = 1_000_000 + max(request.max_lifetime_ms, 0)
        return CreateDelegationTokenResponse(
            error_code=code,
            principal_type="User",
            principal_name=request.owner_principal_name or "alice",
            token_id="t",
            hmac=b"secret",
            expiry_timestamp_ms=self.tokens.get("t", 0),
        )

    def _renew_token(self, request: Any) -> RenewDelegationTokenResponse:
        self.tokens[request.hmac.decode()] += request.renew_period_ms
        return RenewDelegationTokenResponse(expiry_timestamp_ms=self.tokens[request.hmac.decode()])

    def _expire_token(self, request: Any) -> ExpireDelegationTokenResponse:
        if request.expiry_time_period_ms < 0:
            del self.tokens[request.hmac.decode()]
        else:
            self.tokens[request.hmac.decode()] = request.expiry_time_period_ms
        return ExpireDelegationTokenResponse(expiry_timestamp_ms=5)


def _as_any(acl: tuple[object, ...]) -> Any:
    return acl


def _fits(wanted: tuple[Any, ...], acl: tuple[object, ...]) -> bool:
    """As the broker's filter, but without prefixes: ANY is 1, a pattern of MATCH is 2, and None matches each name."""
    kind, name, pattern, principal, host, operation, permission = wanted
    return (
        kind in (1, acl[0])
        and name in (None, acl[1])
        and pattern in (1, 2, acl[2])
        and principal in (None, acl[3])
        and host in (None, acl[4])
        and operation in (1, acl[5])
        and permission in (1, acl[6])
    )
