"""`leader-epoch-checkpoint` and the batches say different things, and no checksum covers either."""

from pathlib import Path

import pytest

from kquorum.raft.adapters.file_log import FileLog
from kquorum.storage.leader_epoch_checkpoint import FILE_NAME, read_epochs
from tests.support.raft.log_folders import FIRST, led, write_log


def test_a_sound_log_stays_sound_whatever_bit_of_the_file_flips(tmp_path: Path) -> None:
    write_log(tmp_path, [*led(0, 4, 1), *led(4, 9, 3)])
    sound = (tmp_path / FILE_NAME).read_bytes()
    for position in range(8 * len(sound)):
        content = bytearray(sound)
        content[position // 8] ^= 1 << position % 8
        (tmp_path / FILE_NAME).write_bytes(content)
        log = FileLog(tmp_path)
        assert (log.damage, log.summary().epochs) == (None, ((1, 0), (3, 4))), bytes(content)
        log.close()
        assert read_epochs(tmp_path) == ((1, 0), (3, 4)), "the file is as it was"


@pytest.mark.parametrize("flipped", [0, 1, 4, 8])
def test_a_flipped_epoch_of_a_batch_is_damage_all_the_same(tmp_path: Path, flipped: int) -> None:
    written = [*led(0, 4, 1), *led(4, 9, 3)]
    write_log(tmp_path, written)
    position = sum(len(each.data) for each in written[:flipped]) + 15
    content = bytearray((tmp_path / FIRST).read_bytes())
    content[position] ^= 4
    (tmp_path / FIRST).write_bytes(content)
    log = FileLog(tmp_path, on_damage="report")
    log.close()
    assert log.damage is not None
    assert log.damage.start_offset <= flipped


def test_an_epoch_of_one_batch_does_not_outweigh_the_file(tmp_path: Path) -> None:
    """The epoch of the only batch of an epoch may be what was flipped."""
    write_log(tmp_path, [*led(0, 4, 1), *led(4, 5, 3)])
    (tmp_path / FILE_NAME).write_text("0\n2\n1 0\n2 4\n")
    log = FileLog(tmp_path, on_damage="report")
    log.close()
    assert log.damage is not None
    assert log.damage.start_offset == 4
