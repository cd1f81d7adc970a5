"""The tables of intervals made by a plain loop over the records; rows are dicts with the columns of the schemas."""

import itertools
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kquorum.wire.record_json import REDACTED, is_sensitive_config
from kquorum.wire.uuids import uuid_to_text
from tests.support.spark.plain_events import Event, committed, log_events, segment_events

Row = dict[str, Any]
RESOURCE_TYPES = {2: "topic", 4: "broker", 8: "broker_logger", 16: "client_metrics", 32: "group"}
ACL_RESOURCES = {
    2: "TOPIC",
    3: "GROUP",
    4: "CLUSTER",
    5: "TRANSACTIONAL_ID",
    6: "DELEGATION_TOKEN",
    7: "USER",
}
ACL_OPERATIONS = (
    *("ALL", "READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "CLUSTER_ACTION"),
    *("DESCRIBE_CONFIGS", "ALTER_CONFIGS", "IDEMPOTENT_WRITE", "CREATE_TOKENS", "DESCRIBE_TOKENS"),
)


@dataclass
class Intervals:
    """Rows that hold from one event to the next of their key."""

    rows: list[Row] = field(default_factory=list)
    current: dict[Hashable, Row] = field(default_factory=dict)

    def open(self, key: Hashable, event: Event, values: Row, ending: str | None = None) -> None:
        self.close(key, event, ending)
        self.current[key] = {
            **values,
            "quorum_epoch": event.quorum_epoch,
            "valid_from_offset": event.offset,
            "valid_from_ms": event.timestamp_ms,
            "valid_to_offset": None,
            "valid_to_ms": None,
        }
        if ending is not None:
            self.current[key]["ended_by"] = None
        self.rows.append(self.current[key])

    def close(self, key: Hashable, event: Event, ending: str | None = None) -> None:
        row = self.current.pop(key, None)
        if row is not None:
            row["valid_to_offset"], row["valid_to_ms"] = event.offset, event.timestamp_ms
            if ending is not None:
                row["ended_by"] = ending


def quorum_epochs(folder: Path) -> list[Row]:
    rows: dict[int, Row] = {}
    for event in segment_events(folder):
        row = rows.setdefault(
            event.quorum_epoch,
            {
                **dict.fromkeys(("leader_id", "voters", "granting_voters", "end_offset", "end_ms")),
                "epoch": event.quorum_epoch,
                "start_offset": event.offset,
                "start_ms": event.timestamp_ms,
                "records": 0,
                "last_record_ms": event.timestamp_ms,
            },
        )
        row["records"] += 1
        row["last_record_ms"] = max(row["last_record_ms"], event.timestamp_ms)
        if event.kind == "LeaderChangeMessage" and row["leader_id"] is None:
            row["leader_id"] = event.record.leader_id
            for name in ("voters", "granting_voters"):
                row[name] = [voter.voter_id for voter in getattr(event.record, name)]
    ordered = [rows[epoch] for epoch in sorted(rows)]
    for row, following in itertools.pairwise(ordered):
        row["end_offset"], row["end_ms"] = following["start_offset"], following["start_ms"]
    return ordered


def voters_history(folder: Path) -> list[Row]:
    found = Intervals()
    for event in log_events(folder):
        voters = _voters(event)
        before = found.current.get("voters")
        if voters is None or (before and before["voters"] == voters):
            continue
        ids = [voter["voter_id"] for voter in voters]
        if before and event.kind == "LeaderChangeMessage" and before["voter_ids"] == ids:
            continue
        old_ids = before["voter_ids"] if before else None
        row = {
            "voter_ids": ids,
            "voters": voters,
            "joined": None if old_ids is None else [each for each in ids if each not in old_ids],
            "left": None if old_ids is None else [each for each in old_ids if each not in ids],
            "record_type": "LeaderChange" if event.kind == "LeaderChangeMessage" else "KRaftVoters",
        }
        found.open("voters", event, row)
    return found.rows


def _voters(event: Event) -> list[Row] | None:
    if event.kind == "LeaderChangeMessage":
        unknown = dict.fromkeys(("directory_id", "endpoints", "min_kraft_version", "max_kraft_version"), None)
        return [{"voter_id": each, **unknown} for each in sorted(v.voter_id for v in event.record.voters)]
    if event.kind != "VotersRecord":
        return None
    return [
        {
            "voter_id": voter.voter_id,
            "directory_id": uuid_to_text(voter.voter_directory_id),
            "endpoints": [
                {"name": each.name, "host": each.host, "port": each.port} for each in voter.endpoints
            ],
            "min_kraft_version": voter.k_raft_version_feature.min_supported_version,
            "max_kraft_version": voter.k_raft_version_feature.max_supported_version,
        }
        for voter in sorted(event.record.voters, key=lambda voter: voter.voter_id)
    ]


def features_history(folder: Path) -> list[Row]:
    found = Intervals()
    events = list(log_events(folder))
    levels = [event for event in committed(events) if event.kind == "FeatureLevelRecord"]
    levels += [event for event in events if event.kind == "KRaftVersionRecord"]
    for event in levels:
        is_quorum = event.kind == "KRaftVersionRecord"
        name = "kraft.version" if is_quorum else event.record.name
        level = event.record.k_raft_version if is_quorum else event.record.feature_level
        before = found.current.get(name)
        if before and before["level"] == level:
            continue
        if level == 0 and not is_quorum:
            found.close(name, event)
            continue
        previous = before["level"] if before else None
        row = {
            "feature": name,
            "level": level,
            "previous_level": previous,
            "change": "set" if previous is None else "upgraded" if level > previous else "downgraded",
            "record_type": "KRaftVersion" if is_quorum else "FeatureLevelRecord",
        }
        found.open(name, event, row)
    return found.rows


def configs_history(folder: Path) -> list[Row]:
    found, names = Intervals(), {}
    for event in committed(log_events(folder)):
        record = event.record
        match event.kind:
            case "TopicRecord":
                names[record.topic_id] = record.name
            case "RemoveTopicRecord":
                for key in [key for key in found.current if key[:2] == (2, names.get(record.topic_id))]:  # type: ignore[index]
                    found.close(key, event, "topic_removed")
            case "ConfigRecord":
                key = (record.resource_type, record.resource_name, record.name)
                if record.value is None:
                    found.close(key, event, "deleted")
                else:
                    found.open(key, event, _config(record), "replaced")
    return found.rows


def _config(record: Any) -> Row:
    is_secret = is_sensitive_config(record.name)
    return {
        "resource_type": RESOURCE_TYPES.get(record.resource_type, str(record.resource_type)),
        "resource_name": record.resource_name,
        "name": record.name,
        "value": REDACTED if is_secret else record.value,
        "is_redacted": is_secret,
    }


def acls_history(folder: Path) -> list[Row]:
    found = Intervals()
    for event in committed(log_events(folder)):
        record = event.record
        if event.kind == "RemoveAccessControlEntryRecord":
            found.close(record.id, event, "removed")
        elif event.kind == "AccessControlEntryRecord":
            operation = record.operation - 2
            row = {
                "acl_id": uuid_to_text(record.id),
                "principal": record.principal,
                "host": record.host,
                "permission": {2: "DENY", 3: "ALLOW"}[record.permission_type],
                "operation": ACL_OPERATIONS[operation]
                if operation in range(len(ACL_OPERATIONS))
                else f"UNKNOWN({record.operation})",
                "resource_type": ACL_RESOURCES[record.resource_type],
                "resource_name": record.resource_name,
                "pattern_type": {3: "LITERAL", 4: "PREFIXED"}[record.pattern_type],
            }
            found.open(record.id, event, row, "replaced")
    return found.rows


def topics_history(folder: Path) -> list[Row]:
    """Each operation on a topic is a run of its records: of a batch, of a snapshot, or without a gap."""
    found, names = Intervals(), {}
    last: dict[Any, Event] = {}
    seen: dict[Any, set[int]] = {}
    lowest: dict[Any, int] = {}
    for event in committed(log_events(folder)):
        if event.kind == "RemoveTopicRecord":
            found.close(event.record.topic_id, event, "removed")
        if event.kind not in ("TopicRecord", "PartitionRecord"):
            continue
        topic_id = event.record.topic_id
        partitions = seen.setdefault(topic_id, set())
        if event.kind == "TopicRecord":
            names.setdefault(topic_id, event.record.name)
        elif event.record.partition_id in partitions:
            continue
        if topic_id not in last or not _goes_on(last[topic_id], event):
            row = {
                "topic_id": uuid_to_text(topic_id),
                "topic_name": names[topic_id],
                "change": "partitions_added" if topic_id in last else "created",
                "partitions": len(partitions),
                "added_partitions": 0,
                "replication_factor": None,
                "from_snapshot": event.batch is None,
                "batch_base_offset": event.batch,
            }
            found.open(topic_id, event, row, "partitions_added")
            lowest.pop(topic_id, None)
        last[topic_id] = event
        if event.kind == "PartitionRecord":
            row, number = found.current[topic_id], event.record.partition_id
            partitions.add(number)
            row["partitions"] += 1
            row["added_partitions"] += 1
            if number < lowest.get(topic_id, number + 1):
                lowest[topic_id], row["replication_factor"] = number, len(event.record.replicas)
    return found.rows


def _goes_on(last: Event, event: Event) -> bool:
    if last.batch is None or event.batch is None:
        return last.offset == event.offset
    follows = last.offset == event.offset - 1 and last.timestamp_ms == event.timestamp_ms
    return last.batch == event.batch or follows


@dataclass
class Brokers:
    """What happened to each broker, for the causes of leader changes, beside the rows."""

    intervals: Intervals = field(default_factory=Intervals)
    happened: dict[int, list[tuple[str, Event]]] = field(default_factory=dict)

    def apply(self, event: Event) -> None:
        record = event.record
        match event.kind:
            case "RegisterBrokerRecord":
                self._put(event, record.broker_id, "registered", _registration(record))
            case "UnregisterBrokerRecord":
                self.intervals.close(record.broker_id, event, "unregistered")
                self.happened.setdefault(record.broker_id, []).append(("unregistered", event))
            case "FenceBrokerRecord" | "UnfenceBrokerRecord":
                is_fence = event.kind == "FenceBrokerRecord"
                self._put(event, record.id, "fenced" if is_fence else "unfenced", {"fenced": is_fence})
            case "BrokerRegistrationChangeRecord":
                self._put(event, record.broker_id, *_registration_change(record))

    def _put(self, event: Event, broker_id: int, change: str, values: Row) -> None:
        before = self.intervals.current.get(broker_id, {})
        row = {**before, **values, "broker_id": broker_id, "change": change, "record_type": event.kind}
        self.intervals.open(broker_id, event, {**row, "batch_base_offset": event.batch}, change)
        self.happened.setdefault(broker_id, []).append((change, event))


def _registration(record: Any) -> Row:
    directories = record.cordoned_log_dirs
    return {
        "broker_epoch": record.broker_epoch,
        "incarnation_id": uuid_to_text(record.incarnation_id),
        "fenced": record.fenced,
        "in_controlled_shutdown": record.in_controlled_shutdown,
        "rack": record.rack,
        "end_points": [
            _fields(each, "name", "host", "port", "security_protocol") for each in record.end_points
        ],
        "features": [
            _fields(each, "name", "min_supported_version", "max_supported_version")
            for each in record.features
        ],
        "log_dirs": list(map(uuid_to_text, record.log_dirs)),
        "cordoned_log_dirs": None if directories is None else list(map(uuid_to_text, directories)),
    }


def _registration_change(record: Any) -> tuple[str, Row]:
    change, values = "other", {}
    if record.log_dirs:
        change, values["log_dirs"] = "directories", list(map(uuid_to_text, record.log_dirs))
    if record.cordoned_log_dirs is not None:
        change = "directories"
        values["cordoned_log_dirs"] = list(map(uuid_to_text, record.cordoned_log_dirs))
    if record.in_controlled_shutdown == 1:
        change, values["in_controlled_shutdown"] = "controlled_shutdown", True
    if record.fenced:
        change, values["fenced"] = ("fenced" if record.fenced == 1 else "unfenced"), record.fenced == 1
    return change, values


def _fields(entity: Any, *names: str) -> Row:
    return {name: getattr(entity, name) for name in names}


def brokers(events: Iterable[Event]) -> Brokers:
    found = Brokers()
    for event in committed(events):
        found.apply(event)
    return found
