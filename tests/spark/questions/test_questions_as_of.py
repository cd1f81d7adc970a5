"""`as_of` and `diff` against the controller's image, behind every record of a random history."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from kquorum.metadata.image.image import MetadataImage
from kquorum.spark_replay.engine import functions as F  # noqa: N812
from kquorum.wire.record_json import REDACTED, is_sensitive_config
from kquorum.wire.uuids import uuid_to_text
from tests.spark.conftest import Audited
from tests.support.spark.lawful_history import SEED, LawfulHistory, cut_of, lawful_history
from tests.support.spark.plain_tables import ACL_OPERATIONS, ACL_RESOURCES, RESOURCE_TYPES

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

KINDS = ("features", "brokers", "topics", "partitions", "configs", "acls")
State = dict[str, set[str]]


@dataclass(frozen=True)
class Asked:
    """A history, and the tables of it: in a log from offset 0, and in one behind a snapshot that ends at `cut`."""

    history: LawfulHistory
    tables: Any
    cut: int


@pytest.fixture(scope="module")
def asked(audited: Audited) -> Iterator[Asked]:
    from kquorum.spark_replay.engine.duckdb_tables import open_in_duckdb

    history = lawful_history()
    with open_in_duckdb(audited.out) as tables:
        yield Asked(history, tables, cut_of(history))


def expected(image: MetadataImage) -> State:
    """What an image holds, one line for each thing, as `found` has it."""
    return {
        "features": {_line(name, level) for name, level in image.features.finalized.items()},
        "brokers": {
            _line(
                *(
                    each.id,
                    each.fenced,
                    each.in_controlled_shutdown,
                    each.epoch,
                    uuid_to_text(each.incarnation_id),
                ),
                *(each.rack, sorted([*map(str, (p.name, p.host, p.port))] for p in each.end_points)),
                sorted(map(uuid_to_text, each.log_dirs)),
                None if each.cordoned_log_dirs is None else sorted(map(uuid_to_text, each.cordoned_log_dirs)),
            )
            for each in image.cluster.brokers.values()
        },
        "topics": {
            _line(topic.name, uuid_to_text(topic.id), len(topic.partitions))
            for topic in image.topics.by_id.values()
        },
        "partitions": {
            _line(
                *(topic.name, uuid_to_text(topic.id), number, state.leader, state.isr, state.replicas),
                *(state.elr, state.last_known_elr, state.adding_replicas, state.removing_replicas),
                *(state.leader_epoch, state.partition_epoch, state.leader_recovery_state),
                list(map(uuid_to_text, state.directories)),
            )
            for topic in image.topics.by_id.values()
            for number, state in topic.partitions.items()
        },
        "configs": {
            _line(
                *(RESOURCE_TYPES.get(resource.type, str(resource.type)), resource.name, name),
                REDACTED if is_sensitive_config(name) else value,
            )
            for resource, values in image.configs.resources.items()
            for name, value in values.items()
        },
        "acls": set(_acls(image)),
    }


def _acls(image: MetadataImage) -> Iterator[str]:
    for each in image.security.acls.values():
        number = each.operation - 2
        operation = ACL_OPERATIONS[number] if number < len(ACL_OPERATIONS) else f"UNKNOWN({each.operation})"
        yield _line(
            *(
                uuid_to_text(each.id),
                each.principal,
                each.host,
                {2: "DENY", 3: "ALLOW"}[each.permission_type],
            ),
            *(operation, ACL_RESOURCES[each.resource_type], each.resource_name),
            {3: "LITERAL", 4: "PREFIXED"}[each.pattern_type],
        )


def found(kind: str, row: Any) -> str:
    if kind == "features":
        return _line(row.feature, row.level)
    if kind == "brokers":
        return _line(
            *(
                row.broker_id,
                row.fenced,
                row.in_controlled_shutdown,
                row.broker_epoch,
                row.incarnation_id,
                row.rack,
            ),
            sorted([*map(str, (each.name, each.host, each.port))] for each in row.end_points),
            sorted(row.log_dirs),
            None if row.cordoned_log_dirs is None else sorted(row.cordoned_log_dirs),
        )
    if kind == "topics":
        return _line(row.topic_name, row.topic_id, row.partitions)
    if kind == "partitions":
        return _line(
            *(row.topic_name, row.topic_id, row.partition_id, row.leader, row.isr, row.replicas),
            *(row.eligible_leader_replicas, row.last_known_elr, row.adding_replicas, row.removing_replicas),
            *(row.leader_epoch, row.partition_epoch, row.leader_recovery_state, row.directories),
        )
    if kind == "configs":
        return _line(row.resource_type, row.resource_name, row.name, row.value)
    return _line(
        *(row.acl_id, row.principal, row.host, row.permission, row.operation, row.resource_type),
        *(row.resource_name, row.pattern_type),
    )


def _line(*values: object) -> str:
    return json.dumps([list(value) if isinstance(value, tuple) else value for value in values])


def states_found(tables: Any, source: str, offsets: Iterable[int]) -> dict[int, State]:
    """By one job for each kind."""
    from kquorum.spark_replay.questions.as_of import states_at
    from kquorum.spark_replay.questions.moments import with_state_offsets

    wanted = list(offsets)
    columns = {"source": "string", "offset": "long"}
    moments = tables.values([(source, each) for each in wanted], columns)
    frames = states_at(tables, with_state_offsets(moments, tables.frame("records")))
    states: dict[int, State] = {offset: {kind: set() for kind in KINDS} for offset in wanted}
    for kind in KINDS:
        for row in frames[kind].collect():
            # The image knows no kraft.version: that is the quorum's own.
            if kind != "features" or row.feature != "kraft.version":
                line = found(kind, row)
                assert line not in states[row.as_of_offset][kind], "twice"
                states[row.as_of_offset][kind].add(line)
    return states


def test_as_of_is_the_image_behind_every_record(asked: Asked) -> None:
    images = asked.history.images
    states = states_found(asked.tables, "lawful", images)
    for offset, image in images.items():
        assert states[offset] == expected(image), f"seed {SEED}, offset {offset}"
    sizes = {kind: max(len(state[kind]) for state in states.values()) for kind in KINDS}
    assert min(sizes[kind] for kind in KINDS[1:]) >= 3, f"seed {SEED} makes too little of something: {sizes}"


@pytest.mark.slow
def test_as_of_is_the_image_behind_every_record_that_follows_a_snapshot(asked: Asked) -> None:
    offsets = [offset for offset in asked.history.images if offset >= asked.cut - 1]
    states = states_found(asked.tables, "lawful-trimmed", offsets)
    for offset in offsets:
        assert states[offset] == expected(asked.history.images[offset]), f"seed {SEED}, offset {offset}"


@pytest.mark.slow
def test_a_single_moment_is_the_same_as_that_moment_among_many(asked: Asked) -> None:
    from kquorum.spark_replay.questions.as_of import as_of
    from kquorum.spark_replay.questions.moments import moment_at_offset, moment_at_time

    history = asked.history
    inside = next(  # a transaction that is committed: its records change nothing before its end
        offset for offset in history.images if moment_is_inside(asked, offset)
    )
    for offset in (inside, history.log.next_offset - 1):
        moment = moment_at_offset(asked.tables, "lawful", offset)
        assert moment.timestamp_ms == history.stamps[offset]
        assert (moment.state_offset < offset) == (offset == inside)
        state = {
            kind: {
                found(kind, row) for row in frame.collect() if row.asDict().get("feature") != "kraft.version"
            }
            for kind, frame in as_of(asked.tables, moment).items()
            if kind in KINDS
        }
        assert state == expected(history.images[offset])
    time_ms = history.stamps[asked.cut]
    last = max(offset for offset, stamp in history.stamps.items() if stamp <= time_ms)
    assert moment_at_time(asked.tables, "lawful", time_ms).offset == last
    assert moment_at_time(asked.tables, "lawful", time_ms - 1).offset < last


def moment_is_inside(asked: Asked, offset: int) -> bool:
    from kquorum.spark_replay.questions.moments import committed_transactions

    if not hasattr(moment_is_inside, "spans"):
        spans = committed_transactions(asked.tables.frame("records"))
        rows = spans.where(F.col("source") == "lawful").collect()
        moment_is_inside.spans = [(row.begin_offset, row.end_offset) for row in rows]  # type: ignore[attr-defined]
    return any(begin < offset < end for begin, end in moment_is_inside.spans)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "steps",
    [
        (0.2, 0.5),
        *(pytest.param(each, marks=pytest.mark.slow) for each in ((0.0, 1.0), (0.6, 0.65), (0.4, 0.4))),
    ],
)
@pytest.mark.slow
def test_diff_is_what_two_states_differ_in(asked: Asked, steps: tuple[float, float]) -> None:
    from kquorum.spark_replay.questions.diff import diff
    from kquorum.spark_replay.questions.moments import moment_at_offset

    history = asked.history
    first, last = (int(step * (history.log.next_offset - 1)) for step in steps)
    moments = [moment_at_offset(asked.tables, "lawful", offset) for offset in (first, last)]
    frames = diff(asked.tables, moments[0], moments[1])
    before, after = (expected(history.images[offset]) for offset in (first, last))
    for kind in KINDS:
        keys = {"features": 1, "brokers": 1, "topics": 2, "partitions": 3, "configs": 3, "acls": 1}[kind]
        old, new = (_by_key(state[kind], keys) for state in (before, after))
        changes = defaultdict[str, set[str]](set)
        for row in frames[kind].collect():
            key = _line(*(row[name] for name in _KEYS[kind]))
            if kind != "features" or row.feature != "kraft.version":
                changes[row.change].add(key)
            assert row.offset is None or first < row.offset <= last
        assert changes["added"] == new.keys() - old.keys()
        assert changes["removed"] == old.keys() - new.keys()
        differ = {key for key in old.keys() & new.keys() if old[key] != new[key]}
        if kind == "topics":
            differ = set()  # a topic has no fields of its own: its partitions' changes are theirs
        secret = {key for key in old.keys() & new.keys() if REDACTED in old[key] and REDACTED in new[key]}
        assert differ <= changes["changed"] <= differ | secret
        assert not changes["passing"] & (old.keys() | new.keys())
        assert changes["restored"] <= {key for key in old.keys() & new.keys() if old[key] == new[key]}


_KEYS = {
    "features": ("feature",),
    "brokers": ("broker_id",),
    "topics": ("topic_name", "topic_id"),
    "partitions": ("topic_name", "topic_id", "partition_id"),
    "configs": ("resource_type", "resource_name", "name"),
    "acls": ("acl_id",),
}


def _by_key(lines: Iterable[str], count: int) -> dict[str, str]:
    return {_line(*json.loads(line)[:count]): line for line in lines}
