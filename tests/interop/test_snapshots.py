"""Snapshots change hands over the wire: who comes late, ours or Kafka's, gets from the other what its log has cut."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from kquorum.cli.clients.quorum_client import QuorumStatus
from kquorum.cli.processes import wait_until
from kquorum.snapshots.naming import snapshot_id_of
from tests.interop.dumps import Dumped, assert_same_dumps, dump_with_ours
from tests.interop.kafka_process import Kafka
from tests.interop.node_config import NodeConfig
from tests.interop.site import WAIT_S, Layout, Site

pytestmark = [pytest.mark.interop, pytest.mark.slow]

FIRST, SECOND, LATE = 1, 2, 3
KAFKA_BROKER, OUR_BROKER = 101, 102
OFTEN = {
    "metadata.log.max.record.bytes.between.snapshots": 3_000,
    "metadata.log.max.snapshot.interval.ms": 1_000,
    "metadata.max.retention.bytes": 12_000,
}
SMALL = {"metadata.log.segment.bytes": 4_096}
# Kafka gives up where a batch is larger than this, such as that of a broker which leads all partitions and stops.
KAFKAS_SMALL = {"internal.metadata.log.segment.bytes": 16_384}
HASTE = {"controller.quorum.election.timeout.ms": 150, "controller.quorum.fetch.timeout.ms": 1_000}
PATIENCE = {"controller.quorum.election.timeout.ms": 3_000, "controller.quorum.fetch.timeout.ms": 5_000}
# Kafka looks once a minute for what its retention has no more use for.
CUT_WITHIN_S = 120.0


def site_of(
    kafka: Kafka,
    folder: Path,
    *,
    is_dynamic: bool,
    settings: Mapping[int, Mapping[str, object]] | None = None,
) -> Site:
    layout = Layout(
        controllers=(FIRST, SECOND) if is_dynamic else (FIRST, SECOND, LATE),
        brokers=(KAFKA_BROKER, OUR_BROKER),
        is_dynamic=is_dynamic,
        settings=settings or {},
        ours=OFTEN | SMALL,
        kafkas=OFTEN | KAFKAS_SMALL,
    )
    return Site(kafka, folder, layout)


def names(kind: str, number: int = 60) -> set[str]:
    return {f"{kind}-{each}" for each in range(number)}


def await_cut(site: Site, node_id: int, above: int = 0) -> None:
    node = site.nodes[node_id]
    assert wait_until(lambda: node.log_start() > above, CUT_WITHIN_S, 0.2), site.tails()


def end_of(node: NodeConfig) -> int:
    return dump_with_ours(node.segments()[-1])[-1].offset + 1


def topics_in(node: NodeConfig) -> set[str]:
    """Of the newest snapshot, and of the log behind it."""
    newest = node.snapshots()[-1]
    found = {record.payload["name"] for record in dump_with_ours(newest) if record.type == "topicrecord"}
    return found | {record.payload["name"] for record in records_of(node) if record.type == "topicrecord"}


def records_of(node: NodeConfig) -> list[Dumped]:
    return [record for path in node.segments() for record in dump_with_ours(path)]


def check(kafka: Kafka, site: Site, *node_ids: int, topics: set[str]) -> None:
    """What each of them has is sound, has all topics, and is the same wherever two logs have the same offsets: the
    first two, which have stopped last, have some."""
    logs: dict[int, dict[int, Dumped]] = {}
    for node_id in node_ids:
        node = site.nodes[node_id]
        assert_same_dumps(kafka, [*node.segments(), *node.checkpoints()])
        assert topics_in(node) == topics
        logs[node_id] = {record.offset: record for record in records_of(node)}
    first, *others = logs.values()
    assert first.keys() & others[0].keys()
    for other in others:
        common = first.keys() & other.keys()
        # Where a segment begins is each replica's own business.
        assert [said(first[offset]) for offset in sorted(common)] == [
            said(other[offset]) for offset in sorted(common)
        ]


def said(record: Dumped) -> tuple[object, ...]:
    return (
        record.batch_base_offset,
        record.leader_epoch,
        record.timestamp_ms,
        record.type,
        repr(record.payload),
    )


def came_through_snapshot(node: NodeConfig, end_before: int) -> bool:
    """It has none of what the log held from where its own had ended."""
    (first, *_) = node.snapshots()
    snapshot_id = snapshot_id_of(first.name)
    assert snapshot_id is not None
    return node.log_start() > end_before and snapshot_id.end_offset >= node.log_start()


def test_a_controller_and_a_broker_of_ours_fetch_kafkas_snapshot(kafka: Kafka, tmp_path: Path) -> None:
    with site_of(kafka, tmp_path, is_dynamic=True) as site:
        site.format_with_kafka([FIRST, KAFKA_BROKER])
        site.start_kafka(FIRST, KAFKA_BROKER)
        early = names("early", 150)
        site.create_topics(early, KAFKA_BROKER)
        await_cut(site, FIRST)
        site.format_with_ours([SECOND, OUR_BROKER])
        site.start_ours(SECOND, OUR_BROKER)
        site.add_voter(SECOND)
        assert came_through_snapshot(site.nodes[SECOND], 0)
        assert came_through_snapshot(site.nodes[OUR_BROKER], 0)
        site.create_topics(names("late"), OUR_BROKER)
        topics = early | names("late")
        assert wait_until(lambda: site.topics(OUR_BROKER) == topics, WAIT_S), site.tails()
        site.stop(OUR_BROKER, KAFKA_BROKER, SECOND, FIRST)
        check(kafka, site, FIRST, SECOND, OUR_BROKER, topics=topics)


def test_a_controller_and_a_broker_of_kafkas_fetch_our_snapshot(kafka: Kafka, tmp_path: Path) -> None:
    with site_of(kafka, tmp_path, is_dynamic=True) as site:
        site.format_with_ours([FIRST, OUR_BROKER])
        site.start_ours(FIRST, OUR_BROKER)
        site.create_topics(names("early"), OUR_BROKER)
        await_cut(site, FIRST)
        site.format_with_kafka([SECOND, KAFKA_BROKER])
        site.start_kafka(SECOND, KAFKA_BROKER)
        site.add_voter(SECOND)
        assert came_through_snapshot(site.nodes[SECOND], 0)
        assert came_through_snapshot(site.nodes[KAFKA_BROKER], 0)
        site.create_topics(names("late"), KAFKA_BROKER)
        topics = names("early") | names("late")
        assert wait_until(lambda: site.topics(KAFKA_BROKER) == topics, WAIT_S), site.tails()
        site.stop(KAFKA_BROKER, OUR_BROKER, SECOND, FIRST)
        check(kafka, site, FIRST, SECOND, KAFKA_BROKER, topics=topics)


@pytest.mark.parametrize("late", ["kafka", "ours"])
def test_a_voter_that_was_away_comes_back_through_a_snapshot(kafka: Kafka, tmp_path: Path, late: str) -> None:
    """The voters are static. It had a log of its own, which ends where the leader's has long been cut."""
    leader = {FIRST: HASTE, SECOND: PATIENCE, LATE: PATIENCE}
    with site_of(kafka, tmp_path, is_dynamic=False, settings=leader) as site:
        is_kafka_late = late == "kafka"
        start_late = site.start_kafka if is_kafka_late else site.start_ours
        start_leader = site.start_ours if is_kafka_late else site.start_kafka
        format_late, format_leader = site.format_with_kafka, site.format_with_ours
        if not is_kafka_late:
            format_late, format_leader = format_leader, format_late
        format_late([LATE])
        format_leader([FIRST])
        site.format_with_ours([SECOND, OUR_BROKER])
        start_leader(FIRST)
        site.start_ours(SECOND, OUR_BROKER)
        start_late(LATE)
        assert site.await_quorum(has_caught_up(LATE)).leader_id == FIRST
        site.create_topics(names("early", 5), OUR_BROKER)
        site.await_quorum(has_caught_up(LATE))
        site.stop(LATE)
        end = end_of(site.nodes[LATE])

        missed = names("missed", 60 if is_kafka_late else 150)
        site.create_topics(missed, OUR_BROKER)
        await_cut(site, FIRST, above=end)
        start_late(LATE)
        site.await_quorum(has_caught_up(LATE))
        assert came_through_snapshot(site.nodes[LATE], end)

        # It counts for the majority again: with it alone, the other voter leads and commits.
        site.kill(FIRST)
        assert site.await_quorum(lambda status: status.leader_id in {SECOND, LATE}).leader_id != FIRST
        site.create_topics(names("late", 5), OUR_BROKER)
        topics = names("early", 5) | missed | names("late", 5)
        assert wait_until(lambda: site.topics(OUR_BROKER) == topics, WAIT_S), site.tails()
        site.stop(OUR_BROKER, LATE, SECOND)
        check(kafka, site, SECOND, LATE, topics=topics)


def has_caught_up(node_id: int) -> Callable[[QuorumStatus], bool]:
    def holds(status: QuorumStatus) -> bool:
        voter = status.voter(node_id)
        return voter is not None and voter.lag in {0, 1}

    return holds
