"""Kafka's `leader-epoch-checkpoint`: written as Kafka writes it, and never believed where it makes no sense."""

from pathlib import Path

import pytest

from kquorum.storage.leader_epoch_checkpoint import (
    FILE_NAME,
    decode_epochs,
    encode_epochs,
    epochs_from,
    read_epochs,
    write_epochs,
)


def test_it_is_kafkas_text_and_read_back(tmp_path: Path) -> None:
    write_epochs(tmp_path, [(1, 0), (4, 17)])
    assert (tmp_path / FILE_NAME).read_bytes() == b"0\n2\n1 0\n4 17\n"
    assert read_epochs(tmp_path) == ((1, 0), (4, 17))
    assert decode_epochs(encode_epochs([])) == decode_epochs(b"") == ()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"1\n0\n", "format version '1'"),
        (b"0\n2\n1 0\n", "number of entries"),
        (b"0\n", "number of entries"),
        (b"0\n2\n4 0\n1 17\n", "do not ascend"),
        (b"0\n2\n1 17\n4 3\n", "do not ascend"),
        (b"0\n1\n1 x\n", "invalid literal"),
        (b"0\n1\n\xff\xff\n", "decode"),
    ],
)
def test_one_that_makes_no_sense_is_as_good_as_none(tmp_path: Path, content: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        decode_epochs(content)
    assert read_epochs(tmp_path) is None
    (tmp_path / FILE_NAME).write_bytes(content)
    assert read_epochs(tmp_path) is None


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (0, 30, [(1, 0), (2, 10), (5, 20)]),
        (10, 30, [(2, 10), (5, 20)]),
        (15, 30, [(2, 15), (5, 20)]),
        (25, 30, [(5, 25)]),
        (30, 30, []),
        (0, 20, [(1, 0), (2, 10)]),
    ],
)
def test_of_a_log_that_was_cut_it_tells_what_is_left(
    start: int, end: int, expected: list[tuple[int, int]]
) -> None:
    assert epochs_from([(1, 0), (2, 10), (5, 20)], start, end) == expected
