"""What outsiders cause a node to write must not fill its disk: its files are bounded, and so are lines a second."""

import asyncio
import logging
import socket
import struct
from pathlib import Path

import pytest

from kquorum.cli.commands.up.run import OUTPUT_FILE
from kquorum.cli.processes import MAX_OUTPUT_BYTES, NodeProcess, wait_until
from kquorum.node.logs import MAX_MESSAGE_CHARACTERS, NodeLogging
from kquorum.wire.protocol.api_keys import ApiKey
from tests.attacks.rig import rig, send
from tests.support.kio.classes import request_class
from tests.support.kio.entities import build
from tests.support.kio.frames import encode_request
from tests.support.node.up_command import SMALL, running

GARBAGE = struct.pack(">i", 2**31 - 1)


def test_a_long_output_is_moved_and_its_process_goes_on(tmp_path: Path) -> None:
    process = NodeProcess(tmp_path / "quorum.toml", 1, tmp_path / OUTPUT_FILE)
    old = tmp_path / f"{OUTPUT_FILE}.1"
    with process.output_path.open("ab", buffering=0) as of_the_node:
        for turn in (b"a", b"b"):
            of_the_node.write(b"kquorum node 1 ready\n" + turn * MAX_OUTPUT_BYTES)
            process.limit_output()
            assert process.output() == ""
            assert process.is_ready, "what was moved was not forgotten"
            assert old.read_bytes().endswith(turn)
        of_the_node.write(b"more\n")
        process.limit_output()
    assert process.output() == "more\n"


@pytest.mark.slow
def test_the_output_of_a_node_under_up_does_not_grow_without_end(tmp_path: Path) -> None:
    """Twenty lines a second about peers are 250 MB a day; `kquorum.log` was bounded, and this file was not."""
    config = tmp_path / "small.toml"
    config.write_text(SMALL.partition("[[nodes]]\nnode.id = 11")[0])
    with running(tmp_path, config) as up:
        up.wait_all_ready(1)
        (output,) = tmp_path.rglob(OUTPUT_FILE)
        old = output.with_name(f"{output.name}.1")
        for flood in (b"a", b"b"):
            # What a node writes in many hours; its file is opened for appending, so that others can append too.
            with output.open("ab") as file:
                file.write((flood * 99 + b"\n") * (MAX_OUTPUT_BYTES // 100 + 1))
            assert wait_until(lambda: output.stat().st_size < MAX_OUTPUT_BYTES, 10)
            assert wait_until(lambda: old.read_bytes().endswith(flood + b"\n"), 10)  # noqa: B023
        port = int(up.config.read_text().partition("CONTROLLER://127.0.0.1:")[2][:5])
        with socket.create_connection(("127.0.0.1", port)) as attacker:
            attacker.sendall(GARBAGE)
            assert attacker.recv(1) == b""
        assert wait_until(lambda: b"closing the connection of" in output.read_bytes(), 10)
        assert not output.read_bytes().startswith(b"\0"), "the node goes on at the beginning"
        assert "ended" not in up.said()
        assert up.said().count(" is ready") == 1
    left = sum(path.stat().st_size for path in (output, old))
    assert left < 3 * MAX_OUTPUT_BYTES


def test_one_request_of_a_client_is_worth_few_lines(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A broker that creates topics automatically wrote a line for each that it could not, thousands for a request."""
    names = [f"topic-{number}" for number in range(2_500)]
    body = build(
        request_class(ApiKey.METADATA, 7),
        {"topics": [{"name": name} for name in names], "allow_auto_topic_creation": True},
    )
    request = encode_request(ApiKey.METADATA, 7, 1, "attacker", body)

    def lines() -> list[str]:
        return [each.getMessage() for each in caplog.records if "automatically" in each.getMessage()]

    async def attack() -> None:
        async with rig(tmp_path, topics=1, creates_topics=True) as built:
            assert await send(built.broker.bound_port, request) is not None
            assert await asyncio.to_thread(wait_until, lambda: bool(lines()), 30)

    asyncio.run(attack())
    assert 0 < len(lines()) <= 40


def test_a_line_about_a_long_name_is_cut(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Else the files that are kept hold the attacker's lines alone."""
    logs = NodeLogging(tmp_path, 1)
    logs.start()
    logging.getLogger("attacked").warning("there is no topic %s", "x" * 30_000)
    logs.stop()
    for line in (logs.path.read_text(encoding="utf-8"), capsys.readouterr().err):
        assert "there is no topic xxx" in line
        assert len(line) < MAX_MESSAGE_CHARACTERS + 200
