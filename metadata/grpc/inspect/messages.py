"""Images, changes and records of the log as messages of the `Inspect` service, and which records a reader wants."""

import json
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from kquorum.metadata.changes import Change, PartitionTransition, TopicIdentity
from kquorum.metadata.grpc.source import InspectSource
from kquorum.metadata.image.cluster import BrokerRegistration, ControllerRegistration, Endpoint
from kquorum.metadata.image.configs import BROKER, TOPIC, ConfigResource, ConfigsImage
from kquorum.metadata.image.image import MetadataImage
from kquorum.metadata.image.partition_state import RECOVERING, PartitionState
from kquorum.metadata.image.topics import TopicImage
from kquorum.wire.control_records import (
    LeaderChangeMessage,
    Voter,
    VotersRecord,
    decode_control_record_lenient,
)
from kquorum.wire.log_batch import LogBatch
from kquorum.wire.metadata_records.registry import ALL
from kquorum.wire.near_names import near_names, quoted
from kquorum.wire.proto import inspect_pb2 as pb
from kquorum.wire.record_frame import decode_record_lenient
from kquorum.wire.record_json import CONTROL_TYPE_NAMES, may_hold_secrets, record_to_json, type_name
from kquorum.wire.record_parsing import Record
from kquorum.wire.uuids import uuid_to_text

# With a hundred bytes or so each, a chunk stays far below gRPC's limit of 4 MiB for a message.
PARTITIONS_PER_CHUNK = 2000


def change_message(change: Change) -> pb.Change:
    message = pb.Change(
        kind=change.kind.name,
        offset=change.offset,
        epoch=change.epoch,
        timestamp_ms=change.timestamp_ms,
    )
    match change.subject:
        case BrokerRegistration() as broker:
            message.broker.CopyFrom(broker_message(broker))
        case TopicIdentity() as topic:
            message.topic.CopyFrom(pb.Topic(name=topic.name, id=uuid_to_text(topic.id)))
        case PartitionTransition(partition, before, after):
            name, topic_id = partition.topic.name, uuid_to_text(partition.topic.id)
            message.partition.CopyFrom(partition_message(name, topic_id, partition.partition_id, after))
            if before is not None:
                message.previous.CopyFrom(partition_message(name, topic_id, partition.partition_id, before))
        case LeaderChangeMessage() as leader:
            message.leader.CopyFrom(
                pb.Leader(
                    id=leader.leader_id,
                    voters=[voter.voter_id for voter in leader.voters],
                    granting_voters=[voter.voter_id for voter in leader.granting_voters],
                )
            )
        case VotersRecord() as voters:
            message.voters.CopyFrom(pb.Voters(voters=map(_voter, voters.voters)))
    return message


def image_chunks(
    image: MetadataImage, header: pb.ImageHeader, *, topics: Iterable[str], min_insync_replicas: int
) -> Iterator[pb.ImageChunk]:
    """The header, then the topics by name (only those named, if any are), and `is_last` on the last chunk.
    `min_insync_replicas` is that of the node's config file."""
    chunk = pb.ImageChunk(header=header)
    effective = min_insync_replicas_of(image.configs, min_insync_replicas)
    for following in _topic_chunks(_chosen(image, set(topics)), effective):
        yield chunk
        chunk = following
    chunk.is_last = True
    yield chunk


def broker_message(broker: BrokerRegistration) -> pb.Broker:
    return pb.Broker(
        id=broker.id,
        epoch=broker.epoch,
        incarnation_id=uuid_to_text(broker.incarnation_id),
        endpoints=[_endpoint(endpoint) for endpoint in broker.end_points],
        rack=broker.rack,
        fenced=broker.fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown,
    )


def partition_message(topic: str, topic_id: str, partition_id: int, state: PartitionState) -> pb.Partition:
    return pb.Partition(
        topic=topic,
        topic_id=topic_id,
        partition_id=partition_id,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        partition_epoch=state.partition_epoch,
        replicas=state.replicas,
        isr=state.isr,
        adding_replicas=state.adding_replicas,
        removing_replicas=state.removing_replicas,
        is_recovering=state.leader_recovery_state == RECOVERING,
        eligible_leader_replicas=state.elr,
        last_known_leader_replicas=state.last_known_elr,
    )


def image_header(source: InspectSource, image: MetadataImage) -> pb.ImageHeader:
    """Of an image of this node, marked with how old it may be."""
    provenance = image.provenance
    brokers, controllers = image.cluster.brokers, image.cluster.controllers
    return pb.ImageHeader(
        provenance=pb.Provenance(
            offset=provenance.last_contained_offset,
            epoch=provenance.last_contained_epoch,
            timestamp_ms=provenance.timestamp_ms,
        ),
        cluster_id=source.cluster_id,
        node_id=source.node_id,
        ms_since_commit=source.ms_since_commit(),
        is_cut_off=source.is_cut_off(),
        features=[
            pb.Feature(name=name, level=level) for name, level in sorted(image.features.finalized.items())
        ],
        brokers=[broker_message(brokers[broker_id]) for broker_id in sorted(brokers)],
        controllers=[_controller(controllers[controller_id]) for controller_id in sorted(controllers)],
        topic_count=len(image.topics.by_id),
        partition_count=image.topics.partition_count,
    )


def _voter(voter: Voter) -> pb.Voter:
    """Its endpoints have a name, and no protocol: that is the config's."""
    return pb.Voter(
        id=voter.voter_id,
        directory_id=uuid_to_text(voter.voter_directory_id),
        endpoints=[pb.Endpoint(name=each.name, host=each.host, port=each.port) for each in voter.endpoints],
    )


def _controller(controller: ControllerRegistration) -> pb.Controller:
    return pb.Controller(
        id=controller.id,
        incarnation_id=uuid_to_text(controller.incarnation_id),
        endpoints=[_endpoint(endpoint) for endpoint in controller.end_points],
    )


def _endpoint(endpoint: Endpoint) -> pb.Endpoint:
    return pb.Endpoint(
        name=endpoint.name,
        host=endpoint.host,
        port=endpoint.port,
        security_protocol=endpoint.security_protocol,
    )


def _chosen(image: MetadataImage, names: set[str]) -> list[TopicImage]:
    by_name = image.topics.by_name
    wanted = sorted(by_name) if not names else sorted(name for name in names if name in by_name)
    return [by_name[name] for name in wanted]


def min_insync_replicas_of(configs: ConfigsImage, default: int) -> Callable[[str], int]:
    """The effective min.insync.replicas by topic name. Brokers may have values of their own (before KIP-966's feature):
    the greatest of them counts, for any of them may lead."""
    key = "min.insync.replicas"
    values = [
        int(value)
        for resource, entries in configs.resources.items()
        if resource.type == BROKER and (value := entries.get(key)) is not None
    ]
    of_brokers = max(values, default=default)

    def effective(topic: str) -> int:
        value = configs.value(ConfigResource(TOPIC, topic), key)
        return of_brokers if value is None else int(value)

    return effective


def _topic_chunks(
    topics: Iterable[TopicImage], min_insync_replicas: Callable[[str], int]
) -> Iterator[pb.ImageChunk]:
    """Full chunks; a topic that does not fit goes on in the next."""
    chunk, room = pb.ImageChunk(topics=pb.TopicChunk()), PARTITIONS_PER_CHUNK
    for topic in topics:
        partitions, topic_id, left = (
            topic.partitions.items(),
            uuid_to_text(topic.id),
            max(1, len(topic.partitions)),
        )
        while left > 0:
            if room <= 0:
                yield chunk
                chunk, room = pb.ImageChunk(topics=pb.TopicChunk()), PARTITIONS_PER_CHUNK
            part = list(islice(partitions, room))
            chunk.topics.topics.append(
                pb.Topic(
                    name=topic.name,
                    id=topic_id,
                    partitions=[
                        partition_message(topic.name, topic_id, number, state) for number, state in part
                    ],
                    min_insync_replicas=min_insync_replicas(topic.name),
                )
            )
            taken = max(1, len(part))
            left, room = left - taken, room - taken
    if chunk.topics.topics:
        yield chunk


UNKNOWN = "Unknown"
CONTROL_TYPES = frozenset(CONTROL_TYPE_NAMES.values())
TYPES = frozenset(cls.__name__ for cls in ALL) | CONTROL_TYPES | {UNKNOWN}


class UnknownType(Exception):
    """A type name that no record has; the text names the nearest one that exists."""


class RecordFilter:
    """Which records a reader wants; control records when asked for, or when one of their types is named."""

    def __init__(self, types: Iterable[str], include_control: bool) -> None:
        """Raises UnknownType."""
        self._types = frozenset(types)
        for name in sorted(self._types - TYPES):
            near = near_names(name, sorted(TYPES), 1, cutoff=0.4)
            raise UnknownType(
                f"no record type is named '{quoted(name)}'" + (f"; did you mean '{near[0]}'?" if near else "")
            )
        self._include_control = include_control or bool(self._types & CONTROL_TYPES)

    def messages(self, batch: LogBatch, start_offset: int, end_offset: int) -> Iterator[pb.LogRecord | None]:
        """The records of a batch from `start_offset` to below `end_offset`; None for each that is not wanted, which
        takes its time as well.

        Raises DecodeError for a malformed batch; a record that cannot be read is shown as Unknown.
        """
        if batch.is_control and not self._include_control:
            return
        for record in batch.records:
            if start_offset <= record.offset < end_offset:
                yield (
                    self._control_message(record, batch) if batch.is_control else self._message(record, batch)
                )

    def _wants(self, name: str) -> bool:
        return not self._types or name in self._types

    def _control_message(self, record: Record, batch: LogBatch) -> pb.LogRecord | None:
        decoded = decode_control_record_lenient(record.key, record.value)
        if not self._wants(UNKNOWN if decoded.record is None else type_name(decoded.record)):
            return None
        message = _empty_message(record, batch)
        message.api_key = decoded.control_type
        if decoded.record is None:
            _fill_unknown(message, record.value or b"", decoded.problem)
        else:
            message.type, message.json = type_name(decoded.record), _json(decoded.record)
            message.version = decoded.record.version
        return message

    def _message(self, record: Record, batch: LogBatch) -> pb.LogRecord | None:
        decoded = decode_record_lenient(record.value or b"")
        if not self._wants(UNKNOWN if decoded.record is None else type_name(decoded.record)):
            return None
        message = _empty_message(record, batch)
        message.api_key, message.version = decoded.api_key, decoded.version
        if decoded.record is None:
            hidden = may_hold_secrets(decoded.api_key)
            _fill_unknown(message, b"" if hidden else decoded.value, decoded.problem)
        else:
            message.type, message.json = type_name(decoded.record), _json(decoded.record)
        return message


def _empty_message(record: Record, batch: LogBatch) -> pb.LogRecord:
    return pb.LogRecord(
        offset=record.offset,
        leader_epoch=batch.leader_epoch,
        timestamp_ms=record.timestamp_ms,
        is_control=batch.is_control,
    )


def _fill_unknown(message: pb.LogRecord, value: bytes, problem: str | None) -> None:
    message.type, message.value, message.problem = UNKNOWN, value, problem or ""


def _json(record: object) -> str:
    return json.dumps(record_to_json(record), separators=(",", ":"))
