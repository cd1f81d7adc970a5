"""What answers say of a damaged log: which offsets are missing, and where nothing beyond can be read."""

import pytest

pytest.importorskip("pyspark")

from kquorum.spark_replay.audit_manifest import AuditedSource
from kquorum.spark_replay.decode.bases import StateBase
from kquorum.spark_replay.decode.members import Member
from kquorum.spark_replay.questions.idle_gaps import text_of_idle_gaps
from kquorum.spark_replay.questions.log_gaps import LogGap, damage_notes, gap_at, unknown_before


def test_a_place_without_an_offset_lies_behind_the_batch_before_it() -> None:
    assert gap_at(None, 0, 3057, None) == LogGap(first=3058, last=None)
    assert gap_at(None, 500, None, 620) == LogGap(first=500, last=619)
    assert gap_at(15, 0, 14, 69) == LogGap(first=15, last=68)


def test_damage_is_said_where_it_lies() -> None:
    middle, end = LogGap(first=15, last=68), LogGap(first=3058, last=None)
    assert damage_notes([], 0) == ()
    assert damage_notes([middle], 1) == (
        "1 damaged place of the log, offsets 15 to 68: what was in it is missing here (table damage)",
    )
    assert damage_notes([middle, LogGap(first=100, last=119)], 2)[0].startswith(
        "2 damaged places of the log, between offsets 15 and 119: what was in them"
    )
    assert damage_notes([end, end], 2) == (
        "the log is damaged at offset 3058 and cannot be read beyond: this is only what could be read, up to "
        "offset 3057 (table damage)",
    )


def test_damage_behind_a_moment_is_not_said_of_it() -> None:
    middle, end = LogGap(first=15, last=68), LogGap(first=3058, last=None)
    assert damage_notes([middle, end], 2, 14) == ()
    assert damage_notes([middle, end], 2, 2000) == damage_notes([middle], 1)
    assert len(damage_notes([middle, end], 2, 3057)) == 2


def _known(*, from_offset: int = 0, end_offset: int | None = 10) -> AuditedSource:
    return AuditedSource(
        source="a",
        files=(),
        member=Member(cluster_id=None, node_id=None, directory_id=None, leader_epoch=None, leader_id=None),
        base=StateBase(source="a", snapshot=None, from_offset=from_offset),
        start_offset=from_offset,
        end_offset=end_offset,
    )


def test_never_is_said_only_of_a_whole_log() -> None:
    assert unknown_before(_known(), []) == ""
    assert unknown_before(_known(from_offset=7), []).startswith("the log begins at offset 7")
    assert unknown_before(_known(), [LogGap(first=3, last=None)]) == "the log is damaged, from offset 3 on"
    assert unknown_before(_known(end_offset=None), []) == "nothing of this log could be read"


def test_idle_gaps_before_a_new_epoch_are_named() -> None:
    assert text_of_idle_gaps([], 0) == ()
    (told,) = text_of_idle_gaps([(60_000, 65_000), (1_000, 4_000)], 5)
    assert told.startswith(
        "no controller wrote from 1970-01-01T00:00:01.000Z to 1970-01-01T00:00:04.000Z, from "
        "1970-01-01T00:01:00.000Z to 1970-01-01T00:01:05.000Z, and 3 times more"
    )
