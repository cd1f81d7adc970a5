"""`kquorum log dump` with audit notes: each change is shown with its principal."""

import json
from pathlib import Path
from uuid import UUID

import pytest

from kquorum.cli.main import run
from kquorum.metadata.controller.log_writer import audit_record
from kquorum.metadata.controller.requests import ControllerRequest
from kquorum.wire.metadata_records.features import NoOpRecord
from kquorum.wire.metadata_records.topics import TopicRecord
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.schema import MetadataRecord
from tests.support.sample_logs import LogBuilder, partition


def note(covered: int) -> MetadataRecord:
    request = ControllerRequest(api_key=ApiKey.CREATE_TOPICS, api_version=7, body=None)
    return audit_record(request, reason="create topics", previous_note_hash=b"", covered_records=covered)


@pytest.fixture
def noted(tmp_path: Path) -> Path:
    """Offsets: 0 idle, 1 note of 2 and 3 (topic a), 4 note of 5 (topic b), 6 of a by the controller itself, 7 idle."""
    a, b = UUID(int=1 << 90), UUID(int=1 << 91)
    log = LogBuilder()
    log.records(1000, NoOpRecord())
    log.records(1001, note(2), TopicRecord(name="a", topic_id=a), partition(a, 0, 1, (1,)))
    log.records(1002, note(1), TopicRecord(name="b", topic_id=b))
    log.records(1003, partition(a, 1, 1, (1,)))
    log.records(1004, NoOpRecord())
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(bytes(log.data))
    return path


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        ((), [0, 1, 2, 3, 4, 5, 6, 7]),
        (("--no-noop",), [1, 2, 3, 4, 5, 6]),
        (("--topic", "a"), [1, 2, 3, 6]),
        (("--topic", "b"), [4, 5]),
        (("--topic", "a", "--type", "Partition"), [1, 3, 6]),
        (("--type", "Topic"), [2, 5]),
    ],
)
def test_notes_stay_with_what_they_tell_of(
    capsys: pytest.CaptureFixture[str], noted: Path, asked: tuple[str, ...], shown: list[int]
) -> None:
    assert run(["log", "dump", str(noted), "--json", *asked]) == 0
    assert [json.loads(line)["offset"] for line in capsys.readouterr().out.splitlines()] == shown
