"""What a node's image tells, in few words: one digest of all that has to be the same on every node."""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kquorum.wire.proto import inspect_pb2 as pb

_NO_LEADER = -1
_DIGEST_BYTES = 12
_PROBLEMS_MAX = 5
# The node's own, and no part of the image.
_OWN_FIELDS = ("node_id", "ms_since_commit", "is_cut_off")


def picture_of(observer: int, chunks: Sequence[pb.ImageChunk]) -> dict[str, Any]:
    """The value of a `picture`; see tests.jepsen.checkers.images."""
    header = chunks[0].header
    topics = [topic for chunk in chunks for topic in chunk.topics.topics]
    return {
        "observer": observer,
        "offset": int(header.provenance.offset),
        "epoch": int(header.provenance.epoch),
        "digest": _digest(header, topics),
        "problems": list(_problems(header, topics))[:_PROBLEMS_MAX],
    }


def _digest(header: pb.ImageHeader, topics: Sequence[pb.Topic]) -> str:
    """A topic may come in several pieces, and its partitions in any order."""
    common = pb.ImageHeader()
    common.CopyFrom(header)
    for name in (*_OWN_FIELDS, "provenance"):
        common.ClearField(name)
    lines = {f"{topic.name} {topic.id}".encode() for topic in topics}
    lines |= {part.SerializeToString(deterministic=True) for topic in topics for part in topic.partitions}
    digest = hashlib.blake2b(common.SerializeToString(deterministic=True), digest_size=_DIGEST_BYTES)
    for line in sorted(lines):
        digest.update(len(line).to_bytes(4) + line)
    return digest.hexdigest()


def _problems(header: pb.ImageHeader, topics: Sequence[pb.Topic]) -> Iterator[str]:
    fenced = {broker.id: broker.fenced for broker in header.brokers}
    names_of: dict[str, set[str]] = {}
    places: Counter[tuple[str, int]] = Counter()
    for topic in topics:
        names_of.setdefault(topic.id, set()).add(topic.name)
        for part in topic.partitions:
            places[topic.name, part.partition_id] += 1
            for problem in _problems_of(part, fenced):
                yield f"{topic.name}-{part.partition_id}: {problem}"
    yield from (f"topics {sorted(names)} have one id" for names in names_of.values() if len(names) > 1)
    yield from (
        f"{name}-{place} is there {count} times" for (name, place), count in places.items() if count > 1
    )
    told = (header.topic_count, header.partition_count)
    if told != (len(names_of), len(places)):
        yield f"{told} topics and partitions by the header, {(len(names_of), len(places))} in the image"


def _problems_of(part: pb.Partition, fenced: Mapping[int, bool]) -> Iterator[str]:
    replicas, isr = set(part.replicas), set(part.isr)
    if not replicas or len(replicas) < len(part.replicas) or len(isr) < len(part.isr):
        yield f"replicas {list(part.replicas)}, in-sync {list(part.isr)}"
    if not isr <= replicas:
        yield f"an in-sync set {sorted(isr)} beyond the replicas {sorted(replicas)}"
    if part.leader == _NO_LEADER:
        return
    if part.leader not in isr:
        yield f"the leader {part.leader} is not in sync: {sorted(isr)}"
    if fenced.get(part.leader, True):
        yield f"the leader {part.leader} is fenced or not registered"
