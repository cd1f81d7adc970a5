"""Messages of the service `Broker` as the requests of Kafka's protocol that they stand for, and the answers to those.

The rules are the controller's. What is refused here could not be written in Kafka's protocol at all, or would be
refused with an error that has no words.
"""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from kquorum.metadata.features import registration_features
from kquorum.metadata.grpc.access import BadMessage, words_for
from kquorum.metadata.isr_changes import changes_of_isr
from kquorum.wire.message_schema import ByVersion
from kquorum.wire.messages.alter_partition import (
    AlterPartitionResponse,
    BrokerState,
    RequestPartitionData,
    ResponsePartitionData,
)
from kquorum.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from kquorum.wire.messages.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    Feature,
    Listener,
)
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.unregister_broker import UnregisterBrokerRequest
from kquorum.wire.proto import broker_pb2 as pb
from kquorum.wire.proto.inspect_pb2 import Endpoint
from kquorum.wire.uuids import uuid_from_text, uuid_to_text

ID_BYTES: Final = 16
LONGEST_TEXT_BYTES: Final = 32_767
# Partitions and members of their in-sync sets in one AlterPartition; each takes the loop some 10 microseconds.
MOST_REPORTED: Final = 2_000
# Endpoints, directories and features of one member.
MOST_OF_A_MEMBER: Final = 500
HIGHEST_PORT: Final = 65_535
HIGHEST_LEVEL: Final = 32_767
HIGHEST_SECURITY_PROTOCOL: Final = 3
NO_EPOCH: Final = -1
_RECOVERED, _RECOVERING = 0, 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """What this node knows and members need not; times in milliseconds."""

    cluster_id: str
    heartbeat_interval_ms: int
    session_timeout_ms: int


def registration_request(request: pb.RegisterRequest, membership: Membership) -> BrokerRegistrationRequest:
    """Raises BadMessage."""
    _check_broker_id(request.broker_id)
    for name in ("endpoints", "directories", "features"):
        _check_count(name, len(getattr(request, name)), MOST_OF_A_MEMBER)
    previous = request.previous_broker_epoch if request.HasField("previous_broker_epoch") else NO_EPOCH
    return BrokerRegistrationRequest(
        broker_id=request.broker_id,
        cluster_id=request.cluster_id or membership.cluster_id,
        incarnation_id=_id("incarnation_id", request.incarnation_id),
        listeners=tuple(_listener(endpoint) for endpoint in request.endpoints),
        features=_features(request.features),
        rack=_text("rack", request.rack) if request.HasField("rack") else None,
        log_dirs=_directories(request, membership.cluster_id),
        previous_broker_epoch=previous,
    )


def registration_message(response: BrokerRegistrationResponse, membership: Membership) -> pb.RegisterResponse:
    return pb.RegisterResponse(
        broker_epoch=response.broker_epoch,
        cluster_id=membership.cluster_id,
        heartbeat_interval_ms=membership.heartbeat_interval_ms,
        session_timeout_ms=membership.session_timeout_ms,
    )


def heartbeat_request(request: pb.HeartbeatRequest) -> BrokerHeartbeatRequest:
    """Raises BadMessage."""
    _check_count("failed_directories", len(request.failed_directories), MOST_OF_A_MEMBER)
    return BrokerHeartbeatRequest(
        broker_id=request.broker_id,
        broker_epoch=request.broker_epoch,
        current_metadata_offset=request.applied_offset,
        want_fence=request.want_fence,
        want_shut_down=request.want_shut_down,
        offline_log_dirs=tuple(_id("failed_directories", each) for each in request.failed_directories),
    )


def heartbeat_message(response: BrokerHeartbeatResponse) -> pb.HeartbeatResponse:
    return pb.HeartbeatResponse(
        is_caught_up=response.is_caught_up,
        is_fenced=response.is_fenced,
        should_shut_down=response.should_shut_down,
    )


def alter_partition_request(request: pb.AlterPartitionRequest) -> ByVersion[AlterPartitionResponse]:
    """Raises BadMessage."""
    reported = len(request.partitions) + sum(len(change.isr) for change in request.partitions[:MOST_REPORTED])
    _check_count("partitions with the members of their isr", reported, MOST_REPORTED)
    topics: dict[UUID, list[RequestPartitionData]] = {}
    for change in request.partitions:
        entry = RequestPartitionData(
            partition_index=change.partition_id,
            leader_epoch=change.leader_epoch,
            new_isr_with_epochs=tuple(
                BrokerState(
                    broker_id=member.broker_id,
                    broker_epoch=member.broker_epoch if member.HasField("broker_epoch") else NO_EPOCH,
                )
                for member in change.isr
            ),
            leader_recovery_state=_RECOVERING if change.is_recovering else _RECOVERED,
            partition_epoch=change.partition_epoch,
        )
        topics.setdefault(_topic_id(change.topic_id), []).append(entry)
    return changes_of_isr(request.broker_id, request.broker_epoch, topics)


def alter_partition_message(response: AlterPartitionResponse) -> pb.AlterPartitionResponse:
    return pb.AlterPartitionResponse(
        partitions=[
            _outcome(uuid_to_text(topic.topic_id), partition)
            for topic in response.topics
            for partition in topic.partitions
        ]
    )


def unregistration_request(request: pb.UnregisterRequest) -> UnregisterBrokerRequest:
    """Raises BadMessage."""
    _check_broker_id(request.broker_id)
    return UnregisterBrokerRequest(broker_id=request.broker_id)


def _outcome(topic_id: str, partition: ResponsePartitionData) -> pb.PartitionOutcome:
    error = partition.error_code
    outcome = pb.PartitionOutcome(
        topic_id=topic_id,
        partition_id=partition.partition_index,
        error_code=error.value,
        error=error.name.upper(),
    )
    if error is not ErrorCode.none:
        outcome.message = words_for(error)
        return outcome
    outcome.leader, outcome.leader_epoch = partition.leader_id, partition.leader_epoch
    outcome.partition_epoch = partition.partition_epoch
    outcome.isr.extend(partition.isr)
    outcome.is_recovering = partition.leader_recovery_state == _RECOVERING
    return outcome


def _directories(request: pb.RegisterRequest, cluster_id: str) -> tuple[UUID, ...]:
    """A member that names none has one all the same, and the same one after each restart."""
    if not request.directories:
        return (uuid.uuid5(uuid.NAMESPACE_OID, f"{cluster_id}/{request.broker_id}"),)
    return tuple(sorted(_id("directories", each) for each in request.directories))


def _features(own: Sequence[pb.SupportedFeature]) -> tuple[Feature, ...]:
    """This node reads the metadata log for the member, so its levels are the member's; what the member says goes
    before."""
    features = {each.name: each for each in registration_features(Feature)}
    for feature in own:
        _check_in("features.min_level", feature.min_level, HIGHEST_LEVEL)
        _check_in("features.max_level", feature.max_level, HIGHEST_LEVEL)
        features[_text("features.name", feature.name)] = Feature(
            name=feature.name,
            min_supported_version=feature.min_level,
            max_supported_version=feature.max_level,
        )
    return tuple(features.values())


def _listener(endpoint: Endpoint) -> Listener:
    if not endpoint.host.strip() or not endpoint.name:
        raise BadMessage("each of the endpoints must have a name and a host to connect to")
    _check_in("endpoints.port", endpoint.port, HIGHEST_PORT, lowest=1)
    _check_in("endpoints.security_protocol", endpoint.security_protocol, HIGHEST_SECURITY_PROTOCOL)
    return Listener(
        name=_text("endpoints.name", endpoint.name),
        host=_text("endpoints.host", endpoint.host),
        port=endpoint.port,
        security_protocol=endpoint.security_protocol,
    )


def _check_broker_id(broker_id: int) -> None:
    if broker_id < 0:
        raise BadMessage(f"broker_id must be 0 or more, not {broker_id}")


def _check_count(what: str, count: int, most: int) -> None:
    if count > most:
        raise BadMessage(f"{what}: {count} in one request; at most {most} are taken, so send several")


def _check_in(what: str, value: int, highest: int, *, lowest: int = 0) -> None:
    if not lowest <= value <= highest:
        raise BadMessage(f"{what} must be from {lowest} to {highest}, not {value}")


def _id(what: str, value: bytes) -> UUID:
    if len(value) != ID_BYTES or not any(value):
        raise BadMessage(
            f"{what} must have {ID_BYTES} bytes that are not all 0, not {len(value)} bytes: {value[:32]!r}"
        )
    return UUID(bytes=value)


def _topic_id(text: str) -> UUID:
    try:
        return uuid_from_text(text[:100])
    except ValueError as error:
        raise BadMessage(f"topic_id: {error}") from None


def _text(what: str, value: str) -> str:
    if len(value.encode()) > LONGEST_TEXT_BYTES:
        raise BadMessage(f"{what} is longer than {LONGEST_TEXT_BYTES} bytes")
    return value
