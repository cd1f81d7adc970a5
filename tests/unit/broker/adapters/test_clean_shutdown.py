"""The mark of a shutdown in order: which epoch the broker had, if all of its folders agree."""

import logging
from pathlib import Path

import pytest

from kquorum.broker.adapters.clean_shutdown import (
    FILE_NAME,
    mark_clean_shutdown,
    previous_broker_epoch,
)
from kquorum.broker.identity import NO_EPOCH


def folders(root: Path, count: int = 2) -> list[Path]:
    made = [root / f"d{number}" for number in range(count)]
    for folder in made:
        folder.mkdir()
    return made


def test_it_is_found(tmp_path: Path) -> None:
    both = folders(tmp_path)
    assert previous_broker_epoch(both) == NO_EPOCH
    mark_clean_shutdown(both, 4711)
    assert (both[0] / FILE_NAME).read_bytes() == b'{"version":0,"brokerEpoch":4711}'
    assert previous_broker_epoch(both) == 4711


def test_one_folder_without_it_or_with_another_spoils_it(tmp_path: Path) -> None:
    both = folders(tmp_path)
    mark_clean_shutdown(both[:1], 5)
    assert previous_broker_epoch(both) == NO_EPOCH
    mark_clean_shutdown(both[1:], 6)
    assert previous_broker_epoch(both) == NO_EPOCH
    assert previous_broker_epoch(both[1:]) == 6


@pytest.mark.parametrize(
    "content", [b"", b"{", b"7", b"[]", b"{}", b'{"brokerEpoch":"7"}', b'{"brokerEpoch":true}', b"\xff",
                b'{"brokerEpoch":-3}', b'{"version":0}']
)  # fmt: skip
def test_an_unreadable_note_says_nothing(tmp_path: Path, content: bytes) -> None:
    (folder,) = folders(tmp_path, 1)
    (folder / FILE_NAME).write_bytes(content)
    assert previous_broker_epoch([folder]) == NO_EPOCH


def test_kafkas_file_is_read(tmp_path: Path) -> None:
    (folder,) = folders(tmp_path, 1)
    (folder / FILE_NAME).write_bytes(b'{ "version": 0, "brokerEpoch": 12 }\n')
    assert previous_broker_epoch([folder]) == 12


def test_what_cannot_be_written_is_reported_and_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        mark_clean_shutdown([tmp_path / "gone"], 1)
    assert "counts as one after a crash" in caplog.text
