"""What failed once fails for ever, but for a full disk; and the owner of the log says what helps."""

import errno
import os
from pathlib import Path

import pytest

from kquorum.storage.errors import BatchUnreadable, DamagedRange, FsyncFailed, LogCorrupted, StorageFull
from kquorum.storage.first_failure import FirstFailure

PATH = Path("/disk/topic-0")
DAMAGE = DamagedRange(3, 7, PATH / "0.log", 120, "its CRC is another")


def test_the_first_error_is_raised_again_before_anything_is_done() -> None:
    failure, first = (
        FirstFailure("call the operator"),
        FsyncFailed(PATH, OSError(errno.EIO, os.strerror(errno.EIO))),
    )
    with pytest.raises(FsyncFailed), failure:
        raise first
    for _ in range(2):
        with pytest.raises(FsyncFailed) as again, failure:
            pytest.fail("it goes on")
        assert again.value is first


def test_a_full_disk_and_our_own_bugs_pass() -> None:
    failure = FirstFailure("call the operator")
    for error in (
        StorageFull("write", PATH, OSError(errno.ENOSPC, "No space left on device")),
        KeyError("bug"),
    ):
        with pytest.raises(type(error)), failure:
            raise error
    with failure:
        pass
    assert failure.error is None


@pytest.mark.parametrize("kind", [LogCorrupted, BatchUnreadable])
def test_the_remedy_is_the_owners(kind: type[LogCorrupted]) -> None:
    failure = FirstFailure("fetch it from the leader")
    with pytest.raises(kind) as caught, failure:
        raise kind(DAMAGE)
    assert str(caught.value) == (
        f"{DAMAGE}; nothing was changed in it. This is no torn end of an interrupted write, so the log is not cut by "
        "itself: fetch it from the leader"
    )
    assert failure.error is caught.value


def test_without_an_owner_the_remedy_is_a_backup() -> None:
    assert str(LogCorrupted(DAMAGE)).endswith("not cut by itself: restore the folder from a backup")
