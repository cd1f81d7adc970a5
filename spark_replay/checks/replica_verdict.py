"""What the comparison of the logs of one quorum comes to: what is lawful in it, and why. Pure.

Files hold no high watermark. What they prove of it: a node takes snapshots of committed records only, so everything
below the end of a sound snapshot is committed; and a record that no majority of the voters holds has been acknowledged
by none. Both hold as of when the files were copied: of copies made at different moments, the later may hold more.

A log may hold records at its end that were never committed, which its node drops when it hears of a later leader. So
logs that differ from some offset on are lawful if what they hold there is of different epochs, if they never hold the
same again behind it (Raft's log matching), and if the log that yields, the one whose last epoch is older, does not hold
what was committed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kquorum.spark_replay.audit_manifest import AuditedSource
from kquorum.spark_replay.checks.replica_facts import Difference, ReplicaFacts, Side


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaFinding:
    """`is_violation` false: lawful, and explained."""

    is_violation: bool
    source: str
    offset: int | None
    proof_offsets: tuple[int, ...]
    subject: str
    reason: str
    file: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Watermark:
    """What the files prove of the high watermark: it is not below `at_least`, the end of the snapshot `by`, nor did any
    record from `majority_below` on have a majority when these copies were made. None: too few voters' logs are here."""

    at_least: int
    by: str | None
    majority_below: int | None


def watermark(facts: ReplicaFacts, sound_snapshots: Mapping[str, Mapping[str, int]]) -> Watermark:
    """`sound_snapshots` are the end offsets of the sound snapshots, by file name, of each source."""
    ends = [
        (end, name)
        for source in facts.sources
        for name, end in sorted(sound_snapshots.get(source.source, {}).items())
    ]
    at_least, by = max(ends, default=(0, None))
    return Watermark(at_least=at_least, by=by, majority_below=_majority_below(facts))


def findings_of(
    facts: ReplicaFacts, mark: Watermark, sound_snapshots: Mapping[str, Mapping[str, int]]
) -> Iterator[ReplicaFinding]:
    """What is wrong, then what is lawful and yet to be explained."""
    verdict = None
    if facts.difference is not None:
        verdict = _verdict_on(facts.difference, facts, sound_snapshots)
        yield verdict
    for missing in facts.missing_records:
        yield ReplicaFinding(
            is_violation=False,
            source=missing.source,
            offset=missing.first_offset,
            proof_offsets=_both(missing.first_offset, missing.last_offset),
            subject="missing records",
            reason=f"{_records(missing.count)} between offsets {missing.first_offset} and {missing.last_offset} "
            "cannot be read here (see the checks of this log) and can be in another of these logs",
        )
    if verdict is None or not verdict.is_violation:
        yield from _tails(facts, mark)


def _verdict_on(
    difference: Difference, facts: ReplicaFacts, sound_snapshots: Mapping[str, Mapping[str, int]]
) -> ReplicaFinding:
    offset, sides = difference.offset, difference.sides
    listed = "; ".join(_side_text(side) for side in sides)
    why = _violated(difference, facts, sound_snapshots)
    fewer = min(sides, key=lambda side: (len(side.sources), side.sources))
    yielding = min(sides, key=lambda side: _last_epoch(side, facts))
    proof = {offset, *(side.base_offset for side in sides)}
    if difference.rejoined_offset is not None:
        proof.add(difference.rejoined_offset)
    if why is None:
        why = (
            f"lawful: {_names(yielding.sources)} last heard of epoch {_last_epoch(yielding, facts)}, and will drop "
            f"everything from offset {offset} on when a leader of a later epoch tells of it; nothing proves that it "
            "was committed"
        )
        return _difference_finding(yielding, False, offset, proof, f"{listed}. This is {why}")
    return _difference_finding(fewer, True, offset, proof, f"{listed}. {why}")


def _difference_finding(
    side: Side, is_violation: bool, offset: int, proof: set[int], reason: str
) -> ReplicaFinding:
    return ReplicaFinding(
        is_violation=is_violation,
        source=", ".join(side.sources),
        offset=offset,
        proof_offsets=tuple(sorted(proof)),
        subject="difference between logs",
        reason=reason,
    )


def _violated(
    difference: Difference, facts: ReplicaFacts, sound_snapshots: Mapping[str, Mapping[str, int]]
) -> str | None:
    """Why this difference can be no lawful one; None if it can."""
    offset, sides = difference.offset, difference.sides
    if difference.rejoined_offset is not None:
        return (
            f"From offset {difference.rejoined_offset} on they hold the same again, which logs that differ before "
            "cannot: one of them was changed"
        )
    epochs = [side.leader_epoch for side in sides]
    if len(set(epochs)) < len(epochs):
        return (
            "Both are of one epoch, whose leader wrote that offset once, in one batch that the others copy byte for "
            "byte: one of the logs was changed, or the epoch had two leaders" + _same_to_the_eye(sides)
        )
    proven = [side for side in sides if _proof_of(side, offset, sound_snapshots) is not None]
    if len(proven) > 1:
        snapshots = " and ".join(str(_proof_of(side, offset, sound_snapshots)) for side in proven)
        return f"Both were committed, as the snapshots {snapshots} show, which end behind this offset"
    strongest = max(sides, key=lambda side: _last_epoch(side, facts))
    for side in sides:
        if side is strongest:
            continue
        snapshot = _proof_of(side, offset, sound_snapshots)
        if snapshot is not None:
            return (
                f"What {_names(side.sources)} holds was committed, as its snapshot {snapshot} shows; but "
                f"{_names(strongest.sources)} is of a later epoch, {_last_epoch(strongest, facts)}, whose leader "
                "lacks it: committed records are lost"
            )
        if _is_majority(side, facts):
            return (
                f"A majority of the voters holds what {_names(side.sources)} holds, and yet "
                f"{_names(strongest.sources)}, which lacks it, is of a later epoch, {_last_epoch(strongest, facts)}: "
                "no majority can have elected its leader, unless the copies were made at different moments"
            )
    return None


def _same_to_the_eye(sides: Sequence[Side]) -> str:
    shown = {(side.record_type, side.payload) for side in sides}
    if len(shown) > 1 or sides[0].payload is None:
        return ""
    return (
        ". The tables show the same of this record in all of them: they differ in a secret, which is not shown, in how "
        "it is written, or in the rest of the batch"
    )


def _proof_of(side: Side, offset: int, sound_snapshots: Mapping[str, Mapping[str, int]]) -> str | None:
    """A snapshot of one of the side's logs that ends behind the offset: what is there was committed."""
    found = (
        name
        for source in side.sources
        for name, end in sound_snapshots.get(source, {}).items()
        if end > offset
    )
    return min(found, default=None)


def _tails(facts: ReplicaFacts, mark: Watermark) -> Iterator[ReplicaFinding]:
    """The end of every log beyond the majority: its records, and why they are not committed. A log that will drop its
    end was reported with the difference."""
    if mark.majority_below is None:
        return
    sides = () if facts.difference is None else facts.difference.sides
    yielding = min(sides, key=lambda side: _last_epoch(side, facts)).sources if sides else ()
    for source in facts.sources:
        if source.end_offset is None or source.end_offset <= mark.majority_below or source.source in yielding:
            continue
        first, last = mark.majority_below, source.end_offset - 1
        yield ReplicaFinding(
            is_violation=False,
            source=source.source,
            offset=first,
            proof_offsets=_both(first, last),
            subject="uncommitted end",
            reason=_tail_reason(source, first, last, facts),
        )


def _tail_reason(source: AuditedSource, first: int, last: int, facts: ReplicaFacts) -> str:
    types: dict[str, int] = {}
    epochs: set[int] = set()
    for each in facts.beyond:
        if each.source == source.source and each.last_offset >= first:
            types[each.record_type] = types.get(each.record_type, 0) + each.count
            epochs.add(each.leader_epoch)
    what = ", ".join(f"{count:,} {name}" for name, count in sorted(types.items()))
    newest = max(epochs, default=facts.last_epochs.get(source.source, 0))
    holders = [
        each.source
        for each in facts.sources
        if (each.end_offset or 0) > last and each.source != source.source
    ]
    shared = f", with {_names(holders)}" if holders and facts.difference is None else " alone"
    span = f"offset {first}" if first == last else f"offsets {first} to {last}"
    others = "; ".join(
        text
        for each in facts.sources
        if each.source != source.source
        for text in [_knows(each, newest)]
        if text
    )
    return (
        f"it holds {span}{shared}, {last - first + 1:,} of epoch {' '.join(map(str, sorted(epochs)))} ({what}): less "
        f"than a majority of the {len(facts.voter_ids)} voters, so nothing there was committed when these were copied"
        + (f". {others}" if others else "")
    )


def _knows(source: AuditedSource, epoch: int) -> str | None:
    """What a node's quorum-state says of an epoch without records in its log."""
    known = source.member.leader_epoch
    if known is None:
        return None
    if known < epoch:
        return f"{source.source} has not heard of epoch {epoch}: its quorum-state says {known}"
    if known == epoch:
        leader = source.member.leader_id
        led = "" if leader is None else f", led by {leader}"
        return f"{source.source} knows of epoch {epoch}{led}, by its quorum-state, but has not fetched from it yet"
    return f"{source.source} is in epoch {known} already, by its quorum-state"


def _majority_below(facts: ReplicaFacts) -> int | None:
    """The largest offset below which a majority of the voters holds the same."""
    needed = len(facts.voter_ids) // 2 + 1
    if not facts.voter_ids or len(_voters_in(facts.sources, facts)) < needed:
        return None
    ends = _ends(facts.sources, facts)
    if facts.difference is None:
        return ends[needed - 1]
    common = min(ends[needed - 1], facts.difference.offset)
    by_name = {each.source: each for each in facts.sources}
    of_sides = [_ends([by_name[name] for name in side.sources], facts) for side in facts.difference.sides]
    return max([common, *(each[needed - 1] for each in of_sides if len(each) >= needed)])


def _ends(sources: Sequence[AuditedSource], facts: ReplicaFacts) -> list[int]:
    """Where the log of each voter ends, the farthest first; of several copies of one the longest."""
    ends: dict[int, int] = {}
    for each in sources:
        if each.member.node_id in facts.voter_ids and each.member.node_id is not None:
            ends[each.member.node_id] = max(ends.get(each.member.node_id, 0), each.end_offset or 0)
    return sorted(ends.values(), reverse=True)


def _voters_in(sources: Sequence[AuditedSource], facts: ReplicaFacts) -> set[int]:
    return {
        each.member.node_id
        for each in sources
        if each.member.node_id is not None and each.member.node_id in facts.voter_ids
    }


def _is_majority(side: Side, facts: ReplicaFacts) -> bool:
    members = [each for each in facts.sources if each.source in side.sources]
    return 2 * len(_voters_in(members, facts)) > len(facts.voter_ids) > 0


def _last_epoch(side: Side, facts: ReplicaFacts) -> int:
    return max(facts.last_epochs[source] for source in side.sources)


def _side_text(side: Side) -> str:
    batch = (
        f"batch {side.base_offset} to {side.last_offset}"
        if side.base_offset != side.last_offset
        else "a batch of one"
    )
    what = side.record_type or "a batch that cannot be read"
    verb = "hold" if len(side.sources) > 1 else "holds"
    return f"{_names(side.sources)} {verb} {what} of epoch {side.leader_epoch} ({batch}, crc {side.crc:08x})"


def _names(sources: Sequence[str]) -> str:
    return " and ".join(sources)


def _records(count: int) -> str:
    return f"{count:,} record{'' if count == 1 else 's'}"


def _both(first: int, last: int) -> tuple[int, ...]:
    return (first,) if first == last else (first, last)
