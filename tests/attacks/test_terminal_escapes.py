"""Names, racks, hosts and messages of others must not act on the terminal of the operator who reads them.

They cleared the screen, set the title and turned text round in `brokers`, `configs describe`, `log diff`, `watch`,
errors and the node's own log.
"""

import json
import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import pytest

from kquorum.cli.commands.watch.lines import json_line, text_line
from kquorum.cli.main import run
from kquorum.cli.output import complain, console, error_console, make_table, say, show_table
from kquorum.node.logs import NodeLogging, log
from kquorum.wire.metadata_records.cluster import BrokerEndpoint
from kquorum.wire.metadata_records.configs import ConfigRecord
from kquorum.wire.metadata_records.topics import TopicRecord
from kquorum.wire.proto import inspect_pb2 as pb
from kquorum.wire.protocol.apis import ApiKey
from tests.support.fake_nodes import fake_node, quorum_response
from tests.support.grpc_source import topic_id
from tests.support.sample_logs import LogBuilder, broker, partition

# Colour, the title of the window, clearing, C1's CSI, DEL, a bell, bidirectional marks, an invisible tag, separators.
HOSTILE = (
    "[bold]a\x1b[31m\x1b]0;title\x07\x1b[2J\x9b2J\x7f\x00\r\x08\u202etxt\u2066\u2069\u200e\u200f\u061c\u2028\u2029"
    "\U000e0041b"
)


class Captured(Protocol):
    """What `capsys.readouterr` answers."""

    out: str
    err: str


OUR_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def acting_in(text: str) -> list[str]:
    """What a terminal would obey, but for line breaks."""
    return sorted({hex(ord(each)) for each in text if each != "\n" and not each.isprintable()})


def assert_harmless(captured: Captured, *, coloured: bool = False) -> None:
    for text in (captured.out, captured.err):
        assert acting_in(OUR_COLOURS.sub("", text) if coloured else text) == []
    assert "Traceback" not in captured.err


@pytest.fixture
def hostile_log(tmp_path: Path) -> Path:
    """Two topics, configs and brokers, all with hostile names; behind them half a batch."""
    end_point = BrokerEndpoint(name=HOSTILE, host=HOSTILE, port=9092, security_protocol=0)
    builder = LogBuilder().leader(1000, 1, 1, 2, epoch=1)
    builder.records(1100, replace(broker(1, 1), rack=HOSTILE, end_points=(end_point,)), broker(2, 2))
    builder.records(
        1200,
        TopicRecord(name=HOSTILE, topic_id=topic_id(1)),
        partition(topic_id(1), 0, 1, (1, 2)),
        ConfigRecord(resource_type=2, resource_name=HOSTILE, name=HOSTILE, value=HOSTILE),
        ConfigRecord(resource_type=2, resource_name=HOSTILE, name=HOSTILE + "2", value=HOSTILE),
    )
    # A record that contradicts the state: the reason quotes its name.
    builder.records(1300, TopicRecord(name=HOSTILE, topic_id=topic_id(2)))
    folder = tmp_path / "node" / "__cluster_metadata-0"
    folder.mkdir(parents=True)
    (folder / "00000000000000000000.log").write_bytes(builder.data + builder.data[:30])
    return folder.parent


OF_LOGS = [
    ("log", "dump"),
    ("log", "dump", "--color", "always"),
    ("log", "dump", "--json"),
    ("log", "dump", "--batches"),
    ("log", "dump", "--topic", HOSTILE),
    ("log", "dump", "--topic", HOSTILE + "x"),
    ("log", "verify"),
    ("log", "verify", "--json"),
    ("log", "diff", "--from", "0"),
    ("log", "diff", "--from", "0", "--json"),
    ("log", "state-hash"),
    ("snapshot", "list"),
    ("snapshot", "list", "--json"),
    ("snapshot", "verify"),
]


@pytest.mark.parametrize(
    "command", OF_LOGS, ids=lambda command: " ".join(command).encode("ascii", "replace").decode()
)
def test_commands_that_read_a_log(
    hostile_log: Path, command: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    run([*command[:2], str(hostile_log), *command[2:]])
    captured = capsys.readouterr()
    assert captured.out + captured.err
    assert_harmless(captured, coloured="always" in command)


def test_json_has_the_value_unchanged(hostile_log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(["log", "dump", str(hostile_log), "--json", "--type", "TopicRecord"])
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["payload"]["name"] for row in rows] == [HOSTILE, HOSTILE]
    run(["log", "diff", str(hostile_log), "--from", "0", "--json"])
    assert any(HOSTILE in each for each in _strings(json.loads(capsys.readouterr().out)))


def of_brokers(_: Any) -> dict[str, object]:
    return {
        "error_code": 0,
        "error_message": None,
        "endpoint_type": 1,
        "cluster_id": HOSTILE,
        "controller_id": 1,
        "brokers": [
            {"broker_id": 1, "host": HOSTILE, "port": 9000, "rack": HOSTILE, "is_fenced": True},
        ],
        "cluster_authorized_operations": -(2**31),
    }


def of_topics(_: Any) -> dict[str, object]:
    one_partition = {
        "error_code": 0,
        "partition_index": 0,
        "leader_id": 1,
        "leader_epoch": 4,
        "replica_nodes": [1],
        "isr_nodes": [1],
        "offline_replicas": [],
    }
    of_topic = {
        "error_code": 0,
        "name": HOSTILE,
        "topic_id": None,
        "is_internal": False,
        "partitions": [one_partition],
        "topic_authorized_operations": -(2**31),
    }
    return {"brokers": [], "cluster_id": HOSTILE, "controller_id": 1, "error_code": 0, "topics": [of_topic]}


def of_configs(error_code: int) -> Callable[[Any], dict[str, object]]:
    def answer(request: Any) -> dict[str, object]:
        synonym = {"name": HOSTILE, "value": HOSTILE, "source": 1}
        config = {
            "name": HOSTILE,
            "value": HOSTILE,
            "read_only": False,
            "config_source": 1,
            "is_sensitive": False,
            "synonyms": [synonym],
            "config_type": 2,
            "documentation": HOSTILE,
        }
        result = {
            "error_code": error_code,
            "error_message": HOSTILE,
            "resource_type": request.resources[0].resource_type,
            "resource_name": HOSTILE,
            "configs": [] if error_code else [config],
        }
        return {"results": [result]}

    return answer


OF_CLUSTERS: list[tuple[tuple[str, ...], Mapping[ApiKey, Any]]] = [
    (
        ("brokers",),
        {ApiKey.DESCRIBE_CLUSTER: of_brokers, ApiKey.DESCRIBE_QUORUM: lambda _: quorum_response()},
    ),
    (("topics", "list"), {ApiKey.METADATA: of_topics}),
    (("topics", "describe", HOSTILE), {ApiKey.METADATA: of_topics}),
    (("configs", "describe", "--topic", HOSTILE), {ApiKey.DESCRIBE_CONFIGS: of_configs(0)}),
    (("configs", "describe", "--topic", HOSTILE), {ApiKey.DESCRIBE_CONFIGS: of_configs(40)}),
]


@pytest.mark.parametrize("as_json", [False, True], ids=["table", "json"])
@pytest.mark.parametrize("number", range(len(OF_CLUSTERS)))
def test_commands_that_ask_a_cluster(
    number: int, as_json: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    command, answers = OF_CLUSTERS[number]
    with fake_node(answers) as node:
        more = ("--bootstrap-controller", node.address) if command == ("brokers",) else ()
        run([*command, "-b", node.address, *more, *(["--json"] if as_json else [])])
    captured = capsys.readouterr()
    assert_harmless(captured)
    whole = captured.out + captured.err
    assert "202e" in whole, "the name is shown, by its escapes"
    if as_json:
        assert any(HOSTILE in each for each in _strings(json.loads(captured.out)))


def _strings(value: object) -> list[str]:
    if isinstance(value, dict):
        return [found for item in value.items() for each in item for found in _strings(each)]
    if isinstance(value, list):
        return [found for each in value for found in _strings(each)]
    return [value] if isinstance(value, str) else []


@pytest.mark.parametrize(
    "arguments", [(HOSTILE,), ("log", "dump", HOSTILE.replace("\0", "")), ("brokers", "-b", HOSTILE)]
)
@pytest.mark.parametrize("more", [(), ("--json",)])
def test_errors(
    arguments: tuple[str, ...], more: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*arguments, *more]) != 0
    assert_harmless(capsys.readouterr())


def test_changes_that_are_watched(capsys: pytest.CaptureFixture[str]) -> None:
    topic = pb.Change(kind=pb.TOPIC_CREATED, topic=pb.Topic(name=HOSTILE, id=HOSTILE))
    console().print(text_line(topic), soft_wrap=True)
    captured = capsys.readouterr()
    assert "\\u202e" in captured.out
    assert_harmless(captured)
    assert acting_in(json_line(topic)) == []
    assert json.loads(json_line(topic))["topic"]["name"] == HOSTILE


@pytest.mark.parametrize("is_terminal", [False, True])
def test_every_way_out_is_safe(
    is_terminal: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a terminal, too, where rich has ways of its own."""
    if is_terminal:
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    from rich.text import Text

    for out in (console(), error_console(), console(markup=False)):
        out.print(HOSTILE)
        out.print(Text(HOSTILE, "red"))
    say(HOSTILE)
    complain(HOSTILE)
    show_table(make_table(HOSTILE, ("a", "~b"), [(HOSTILE, Text(HOSTILE, "red")), ("line\nbreak", None)]))
    captured = capsys.readouterr()
    assert_harmless(captured, coloured=is_terminal)
    assert "line\\nbreak" in captured.out


def test_the_log_of_a_node(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    node_log = NodeLogging(tmp_path, 1)
    node_log.start()
    log.warning("broker %s is fenced", HOSTILE)
    try:
        raise ValueError(HOSTILE)
    except ValueError:
        logging.getLogger("raft").exception("%s", HOSTILE)
    node_log.stop()
    assert_harmless(capsys.readouterr())
    assert acting_in(node_log.path.read_text(encoding="utf-8")) == []


def test_no_command_has_another_way_out() -> None:
    """Whatever a command prints goes through cli.output."""
    root = Path(__file__).parents[2]
    own_ways = re.compile(
        r"typer\.echo\((?!uuid_to_text|\"|version_text\(|script\))|\bConsole\(|ensure_ascii=False|(?<![.\w])print\("
    )
    allowed = {
        "cli/output.py",
        "cli/safe_console.py",
        "cli/commands/log/dump_lines.py",
        "cli/commands/audit/answers.py",
    }
    found = {
        f"{path.relative_to(root)}: {line.strip()}"
        for path in (root / "cli").rglob("*.py")
        if str(path.relative_to(root)) not in allowed
        for line in path.read_text(encoding="utf-8").splitlines()
        if own_ways.search(line)
    }
    assert found == set()
