"""Controllers that a recovery has left behind."""

from pathlib import Path

import pytest

from kquorum.node.fence import EPOCH_JUMP, FILE_NAME, Fenced, FenceWatch, check_not_fenced, fence


def test_a_fenced_folder_says_why(tmp_path: Path) -> None:
    check_not_fenced(tmp_path)
    fence(tmp_path, "its quorum was recovered elsewhere")
    with pytest.raises(Fenced, match=r"its quorum was recovered elsewhere; keep a copy .* add-voter"):
        check_not_fenced(tmp_path)


def test_a_controller_with_a_history_is_fenced_by_a_leader_far_ahead(tmp_path: Path) -> None:
    watch = FenceWatch(tmp_path, 7, has_history=True)
    assert watch.look_at(8, 1) is None
    assert watch.look_at(8 + EPOCH_JUMP - 1, 1) is None
    watch = FenceWatch(tmp_path, 7, has_history=True)
    error = watch.look_at(7 + EPOCH_JUMP, 1)
    assert error is not None
    assert "node 1 leads epoch 1048583, and this controller knew epoch 7" in str(error)
    with pytest.raises(Fenced):
        check_not_fenced(tmp_path)


def test_a_new_controller_may_begin_with_any_epoch(tmp_path: Path) -> None:
    watch = FenceWatch(tmp_path, 0, has_history=False)
    assert watch.look_at(5 + EPOCH_JUMP, 1) is None
    assert not (tmp_path / FILE_NAME).exists()
    assert watch.look_at(9 + 2 * EPOCH_JUMP, 1) is not None  # another recovery, without it


def test_without_a_leader_nothing_is_concluded(tmp_path: Path) -> None:
    assert FenceWatch(tmp_path, 7, has_history=True).look_at(7 + EPOCH_JUMP, -1) is None
