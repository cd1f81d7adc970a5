"""Which line of a node goes where: standard output, standard error, the file."""

import logging
from collections.abc import Callable
from logging.handlers import RotatingFileHandler
from pathlib import Path

import pytest

from kquorum.node.logs import FILE_NAME, NodeLogging, ready_log


def logged(
    folder: Path, capsys: pytest.CaptureFixture[str], work: Callable[[], None]
) -> tuple[str, str, str]:
    """What came out at standard output, standard error and in the file."""
    logging_ = NodeLogging(folder, 1)
    logging_.start()
    try:
        work()
    finally:
        logging_.stop()
    printed = capsys.readouterr()
    return printed.out, printed.err, logging_.path.read_text()


class TestTerminal:
    def test_the_ready_line_has_the_time_and_its_own_stream(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        out, err, file = logged(tmp_path, capsys, lambda: ready_log.info("kquorum node %d ready: here", 1))
        assert out[2] == out[5] == ":"
        assert out[8:] == " kquorum node 1 ready: here\n"
        assert not err
        assert "kquorum node 1 ready" in file

    def test_what_ends_the_node_is_left_to_the_command_line(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        log = logging.getLogger("raft.adapters.driver")

        def work() -> None:
            log.warning("the disk is slow")
            log.critical("the disk is gone")

        out, err, file = logged(tmp_path, capsys, work)
        assert not out
        assert err[8:] == " warning: the disk is slow\n"
        assert "CRITICAL raft.adapters.driver: the disk is gone" in file


class TestFile:
    def test_the_tracebacks_of_a_library_are_bounded_and_its_neighbours_are_not(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        def work() -> None:
            for number in range(1_000):
                logging.getLogger("asyncio").error("a callback failed: %d", number)
                logging.getLogger("grpc._cython.cygrpc").error("a call failed: %d", number)
                logging.getLogger("asynciobeside").error("ours: %d", number)

        _, _, file = logged(tmp_path, capsys, work)
        assert "a callback failed: 0" in file
        assert "a call failed: 0" in file
        assert file.count("a callback failed") < 500
        assert file.count("a call failed") < 500
        assert file.count("ours") == 1_000

    def test_a_disk_that_takes_no_more_lines_costs_these_lines_and_nothing_else(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(*_: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(RotatingFileHandler, "shouldRollover", refuse)
        log = logging.getLogger("raft.adapters.driver")
        out, err, file = logged(tmp_path, capsys, lambda: log.warning("the disk is full"))
        assert (out, file) == ("", "")
        assert err[8:] == " warning: the disk is full\n"

    def test_a_disk_that_stays_full_does_not_hide_why_the_node_ends(self, tmp_path: Path) -> None:
        """What was not taken is tried once more when the file is closed; /dev/full never takes anything."""
        (tmp_path / FILE_NAME).symlink_to("/dev/full")
        logging_ = NodeLogging(tmp_path, 1)
        logging_.start()
        logging.getLogger("raft.adapters.driver").critical("the disk is gone")
        logging_.stop()
