"""A second replay of a metadata log, in plain Python, one record after the other: what the tables are held against.

It shares only the wire formats with the Spark replay. Partitions are changed in place, as Kafka's
`PartitionRegistration.merge` describes it.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

from kquorum.wire.uuids import ZERO_UUID, uuid_to_text
from tests.support.spark.plain_events import Event, committed, log_events

CARRIED = ("replicas", "isr", "removing_replicas", "adding_replicas")
ELR = ("eligible_leader_replicas", "last_known_elr")
PLACES = (
    *("valid_from_offset", "valid_from_ms", "valid_to_offset", "valid_to_ms"),
    *("record_type", "quorum_epoch", "batch_base_offset"),
)


@dataclass
class Replay:
    """`history` rows are dicts with the columns of `partition_history`; `brokers` the final state by id."""

    names: dict[UUID, str] = field(default_factory=dict)
    history: list[dict[str, Any]] = field(default_factory=list)
    current: dict[tuple[UUID, int], dict[str, Any]] = field(default_factory=dict)
    brokers: dict[int, dict[str, Any]] = field(default_factory=dict)

    def apply(self, event: Event) -> None:
        handler = getattr(self, f"apply_{event.kind}", None)
        if handler is not None:
            handler(event, event.record)

    def apply_TopicRecord(self, event: Event, record: Any) -> None:  # noqa: N802
        self.names[record.topic_id] = record.name

    def apply_PartitionRecord(self, event: Event, record: Any) -> None:  # noqa: N802
        state = {name: list(getattr(record, name)) for name in CARRIED}
        state |= {name: list(getattr(record, name) or ()) for name in ELR}
        directories = record.directories or [ZERO_UUID] * len(record.replicas)
        state |= {
            "leader": record.leader,
            "leader_epoch": record.leader_epoch,
            "partition_epoch": record.partition_epoch,
            "leader_recovery_state": record.leader_recovery_state,
            "directories": [uuid_to_text(directory) for directory in directories],
        }
        self._open(event, (record.topic_id, record.partition_id), state)

    def apply_PartitionChangeRecord(self, event: Event, record: Any) -> None:  # noqa: N802
        key = (record.topic_id, record.partition_id)
        state = self._state(key)
        for name in (*CARRIED, *ELR):
            if getattr(record, name) is not None:
                state[name] = list(getattr(record, name))
        if record.directories is not None:
            state["directories"] = [uuid_to_text(directory) for directory in record.directories]
        if record.leader_recovery_state != -1:
            state["leader_recovery_state"] = record.leader_recovery_state
        if record.leader != -2:
            state["leader"] = record.leader
            state["leader_epoch"] += 1
        state["partition_epoch"] += 1
        self._open(event, key, state)

    def apply_ClearElrRecord(self, event: Event, record: Any) -> None:  # noqa: N802
        for key in list(self.current):
            if record.topic_name in ("", self.names[key[0]]) and any(self.current[key][name] for name in ELR):
                state = self._state(key) | {name: [] for name in ELR}
                state["partition_epoch"] += 1
                self._open(event, key, state)

    def apply_RemoveTopicRecord(self, event: Event, record: Any) -> None:  # noqa: N802
        for key in [key for key in self.current if key[0] == record.topic_id]:
            self._close(event, key)

    def apply_RegisterBrokerRecord(self, event: Event, record: Any) -> None:  # noqa: N802
        self.brokers[record.broker_id] = {
            "registered": True,
            "broker_epoch": record.broker_epoch,
            "fenced": record.fenced,
            "in_controlled_shutdown": record.in_controlled_shutdown,
        }

    def apply_BrokerRegistrationChangeRecord(self, event: Event, record: Any) -> None:  # noqa: N802
        broker = self.brokers[record.broker_id]
        if record.fenced:
            broker["fenced"] = record.fenced == 1
        if record.in_controlled_shutdown:
            broker["in_controlled_shutdown"] = True

    def apply_FenceBrokerRecord(self, event: Event, record: Any) -> None:  # noqa: N802
        self.brokers[record.id]["fenced"] = True

    def apply_UnfenceBrokerRecord(self, event: Event, record: Any) -> None:  # noqa: N802
        self.brokers[record.id]["fenced"] = False

    def apply_UnregisterBrokerRecord(self, event: Event, record: Any) -> None:  # noqa: N802
        self.brokers[record.broker_id]["registered"] = False

    def _state(self, key: tuple[UUID, int]) -> dict[str, Any]:
        return {name: value for name, value in self.current[key].items() if name not in PLACES}

    def _open(self, event: Event, key: tuple[UUID, int], state: dict[str, Any]) -> None:
        if key in self.current:
            self._close(event, key)
        self.current[key] = {
            **state,
            "topic_id": uuid_to_text(key[0]),
            "topic_name": self.names.get(key[0]),
            "partition_id": key[1],
            "valid_from_offset": event.offset,
            "valid_from_ms": event.timestamp_ms,
            "valid_to_offset": None,
            "valid_to_ms": None,
            "record_type": event.kind,
            "quorum_epoch": event.quorum_epoch,
            "batch_base_offset": event.batch,
        }
        self.history.append(self.current[key])

    def _close(self, event: Event, key: tuple[UUID, int]) -> None:
        row = self.current.pop(key)
        row["valid_to_offset"], row["valid_to_ms"] = event.offset, event.timestamp_ms


def replay(metadata_folder: Path) -> Replay:
    """Replay the log in `metadata_folder`, from its oldest snapshot if it does not begin at offset 0."""
    result = Replay()
    for event in committed(log_events(metadata_folder)):
        result.apply(event)
    return result
