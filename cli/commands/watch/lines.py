"""How `kquorum watch` shows a change: one line for the eye, or one JSON object for a program."""

from collections.abc import Sequence

from rich.text import Text

from kquorum.cli.output import json_text, utc_text
from kquorum.wire.proto import inspect_pb2 as pb

_STYLES = {
    pb.BROKER_REGISTERED: "cyan",
    pb.BROKER_FENCED: "red",
    pb.BROKER_UNFENCED: "green",
    pb.BROKER_IN_CONTROLLED_SHUTDOWN: "yellow",
    pb.BROKER_REMOVED: "red",
    pb.TOPIC_CREATED: "green",
    pb.TOPIC_DELETED: "red",
    pb.PARTITION_CREATED: "green",
    pb.PARTITION_CHANGED: "yellow",
    pb.LEADER_ELECTED: "bold magenta",
    pb.VOTERS_CHANGED: "bold magenta",
}
_WORDS_WIDTH = 17  # of all kinds but one


def kind_name(change: pb.Change) -> str:
    """`partition_changed`, as `--kind` takes it."""
    return pb.ChangeKind.Name(change.kind).lower()


def json_line(change: pb.Change) -> str:
    """Every field of the change's subject, also those at their defaults; `previous` only where there is one."""
    fields: dict[str, object] = {
        "kind": kind_name(change),
        "offset": change.offset,
        "epoch": change.epoch,
        "timestamp_ms": change.timestamp_ms,
    }
    subject = change.WhichOneof("subject")
    if subject is not None:
        fields[subject] = _subject_fields(getattr(change, subject), change.epoch)
    if change.HasField("previous"):
        fields["previous"] = _partition_fields(change.previous)
    return json_text(fields, separators=(",", ":"))


def text_line(change: pb.Change) -> Text:
    """Time (UTC), offset, what happened, and what is so now: `leader 1 -> 2` where something changed."""
    line = Text()
    line.append(_time(change.timestamp_ms), "dim")
    line.append(f" {change.offset:>8} ", "dim")
    style = _STYLES.get(change.kind, "bold")
    line.append(f" {kind_name(change).replace('_', ' '):<{_WORDS_WIDTH}}", style)
    line.append(f"  {_words(change)}")
    return line


def _words(change: pb.Change) -> str:
    match change.WhichOneof("subject"):
        case "initial_state":
            state = change.initial_state
            known = (
                f"node {state.leader_id} leads epoch {state.leader_epoch}"
                if state.HasField("leader_id")
                else "no leader is known"
            )
            return (
                f"cluster {state.cluster_id}, {known}; told by node {state.node_id}, "
                f"from offset {state.next_offset} on"
            )
        case "broker":
            return _broker_words(change.broker)
        case "topic":
            return f"{change.topic.name} (id {change.topic.id})"
        case "partition":
            previous = change.previous if change.HasField("previous") else None
            return _partition_words(change.partition, previous)
        case "leader":
            elected = change.leader
            return (
                f"node {elected.id} leads the quorum in epoch {change.epoch}  voters {_ids(elected.voters)}  "
                f"voted for it: {_ids(elected.granting_voters)}"
            )
        case "voters":
            return "the voters are " + (", ".join(map(_voter_words, change.voters.voters)) or "none")
    return ""


def _voter_words(voter: pb.Voter) -> str:
    places = ", ".join(f"{item.host}:{item.port}" for item in voter.endpoints)
    return f"{voter.id} at {places} (directory {voter.directory_id})"


def _broker_words(broker: pb.Broker) -> str:
    addresses = ", ".join(f"{item.name}://{item.host}:{item.port}" for item in broker.endpoints)
    rack = f", rack {broker.rack}" if broker.HasField("rack") else ""
    return f"broker {broker.id} epoch {broker.epoch} {'fenced' if broker.fenced else 'active'} at {addresses}{rack}"


def _partition_words(partition: pb.Partition, previous: pb.Partition | None) -> str:
    before = previous or partition
    shown = [
        f"{partition.topic}-{partition.partition_id}",
        "leader " + _change(_leader(before), _leader(partition)),
        "isr " + _change(_ids(before.isr), _ids(partition.isr)),
    ]
    if previous is None or list(before.replicas) != list(partition.replicas):
        shown.append("replicas " + _change(_ids(before.replicas), _ids(partition.replicas)))
    shown.append("leader epoch " + _change(str(before.leader_epoch), str(partition.leader_epoch)))
    shown.append(f"partition epoch {partition.partition_epoch}")
    if partition.is_recovering:
        shown.append("recovering from an unclean election")
    return "  ".join(shown)


def _change(before: str, after: str) -> str:
    return after if before == after else f"{before} -> {after}"


def _leader(partition: pb.Partition) -> str:
    return "none" if partition.leader < 0 else str(partition.leader)


def _ids(ids: Sequence[int]) -> str:
    return ",".join(str(number) for number in ids) or "none"


def _time(timestamp_ms: int) -> str:
    return utc_text(timestamp_ms) if timestamp_ms >= 0 else " " * 23


def _subject_fields(subject: object, epoch: int) -> dict[str, object]:
    match subject:
        case pb.Partition():
            return _partition_fields(subject)
        case pb.Broker():
            return _broker_fields(subject)
        case pb.Topic():
            return {"name": subject.name, "id": subject.id}
        case pb.InitialState():
            return {
                "cluster_id": subject.cluster_id,
                "node_id": subject.node_id,
                "next_offset": subject.next_offset,
                "high_watermark": subject.high_watermark,
                "leader_id": subject.leader_id if subject.HasField("leader_id") else None,
                "leader_epoch": subject.leader_epoch if subject.HasField("leader_epoch") else None,
            }
        case pb.Leader():
            return {
                "id": subject.id,
                "epoch": epoch,
                "voters": list(subject.voters),
                "granting_voters": list(subject.granting_voters),
            }
        case pb.Voters():
            return {"voters": [_voter_fields(voter) for voter in subject.voters]}
    raise AssertionError(f"a change is about {type(subject).__name__}")


def _voter_fields(voter: pb.Voter) -> dict[str, object]:
    endpoints = [{"name": e.name, "host": e.host, "port": e.port} for e in voter.endpoints]
    return {"id": voter.id, "directory_id": voter.directory_id, "endpoints": endpoints}


def _broker_fields(broker: pb.Broker) -> dict[str, object]:
    return {
        "id": broker.id,
        "epoch": broker.epoch,
        "incarnation_id": broker.incarnation_id,
        "endpoints": [
            {"name": e.name, "host": e.host, "port": e.port, "security_protocol": e.security_protocol}
            for e in broker.endpoints
        ],
        "rack": broker.rack if broker.HasField("rack") else None,
        "fenced": broker.fenced,
        "in_controlled_shutdown": broker.in_controlled_shutdown,
    }


def _partition_fields(partition: pb.Partition) -> dict[str, object]:
    return {
        "topic": partition.topic,
        "topic_id": partition.topic_id,
        "partition_id": partition.partition_id,
        "leader": partition.leader,
        "leader_epoch": partition.leader_epoch,
        "partition_epoch": partition.partition_epoch,
        "replicas": list(partition.replicas),
        "isr": list(partition.isr),
        "adding_replicas": list(partition.adding_replicas),
        "removing_replicas": list(partition.removing_replicas),
        "is_recovering": partition.is_recovering,
    }
