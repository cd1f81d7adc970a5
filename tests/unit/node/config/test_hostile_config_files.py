"""Config files of another author, or that are no files: each ends in one clear message, at once."""

import os
from pathlib import Path

import pytest

from kquorum.cli.clients import security as command_security
from kquorum.cli.main import run
from kquorum.node.config.errors import ConfigError
from kquorum.node.config.load import load_config
from kquorum.node.config.properties_file import properties_of
from tests.support.config_files import PROPERTIES, SMALL, changed, write
from tests.support.node.config_errors import messages

ESCAPE = "after \\u there must be four hex digits; a backslash that is meant is written \\\\"
NULL = "holds the character U+0000, which no value may hold"


@pytest.mark.parametrize(
    "written", ["\\uZZZZ", "\\u+123", "\\u 123", "\\u1_23", "\\u12", "\\u\u0660\u0660\u0664\u0661"]
)
def test_an_escape_without_four_hex_digits_is_reported_with_its_line(
    tmp_path: Path, written: str, capsys: pytest.CaptureFixture[str]
) -> None:
    line = PROPERTIES.count("\n") + 1
    assert messages(tmp_path, f"{PROPERTIES}broker.rack={written}\n", "server.properties") == [
        f"server.properties:{line}: {ESCAPE}"
    ]
    file = write(tmp_path, f"# mine\nsecurity.protocol={written}\n", "client.properties")
    assert run(["topics", "list", "-b", "127.0.0.1:1", "--command-config", str(file)]) == 2
    assert f"client.properties:2: {ESCAPE}" in " ".join(capsys.readouterr().err.split())


def test_what_java_writes_as_two_escapes_is_one_character(tmp_path: Path) -> None:
    file = write(tmp_path, "a=\\ud83d\\ude00\\u00e9", "client.properties")
    assert properties_of(file) == [(1, "a", "😀é")]


@pytest.mark.parametrize("written", ["\\ud800", "\\ude00\\ud83d", "x\\udfffy"])
def test_half_a_character_is_refused(tmp_path: Path, written: str) -> None:
    (message,) = messages(tmp_path, f"a={written}\n", "server.properties")
    assert message.startswith("server.properties:1: ")
    assert "half of a character" in message


@pytest.mark.parametrize("written", ["/tmp/x\\u0000y", "/tmp/x\0y"])
def test_no_property_holds_a_null(tmp_path: Path, written: str) -> None:
    (message,) = messages(tmp_path, f"log.dirs={written}\n", "server.properties")
    assert message == f"server.properties:1: log.dirs {NULL}"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            'broker.rack = "a\\u0000b"',
            "quorum.toml:15: broker.rack " + NULL,
        ),
        (
            'log.dirs = ["a", "\\u0000"]',
            "quorum.toml:15: log.dirs " + NULL,
        ),
        (
            "num.partitions = 0x" + "f" * 10_000,
            "quorum.toml:15: num.partitions is a number that no config holds: it has more than 64 bits",
        ),
        ("num.partitions = " + "1" * 5000, "quorum.toml: this is not TOML: a number has too many digits"),
        ("num.partitions = " + "[" * 100_000, "quorum.toml: it is nested too deeply to be a config"),
        (".".join("a" * 3000) + " = 1", "quorum.toml: it is nested too deeply to be a config"),
        (
            "num.partitions = " + "[" * 150 + "]" * 150,
            "quorum.toml:15: num.partitions is a list of lists, which no config holds",
        ),
    ],
    ids=["null", "null in a list", "hex", "digits", "lists", "tables", "fewer lists"],
)
def test_toml_that_no_config_is(tmp_path: Path, line: str, message: str) -> None:
    assert messages(tmp_path, changed("node.id = 11", f"node.id = 11\n{line}")) == [message]


@pytest.mark.parametrize("name", ["quorum.toml", "server.properties"])
def test_a_pipe_is_no_config(tmp_path: Path, name: str) -> None:
    """A read of it would wait for a writer."""
    os.mkfifo(tmp_path / name)
    with pytest.raises(ConfigError) as caught:
        load_config(tmp_path / name)
    assert str(caught.value) == f"{tmp_path / name}: the config file cannot be read: it is no regular file"


def test_bytes_that_are_no_text_are_no_config(tmp_path: Path) -> None:
    (tmp_path / "quorum.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match=r"the config file cannot be read: it is not UTF-8$"):
        load_config(tmp_path / "quorum.toml")


def test_a_pipe_is_no_command_config(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "client")
    options = ["--command-config", str(tmp_path / "client")]
    try:
        assert run(["topics", "list", "-b", "127.0.0.1:1", *options]) == 2
    finally:
        command_security.begin()  # else the choice of the file stands for what runs in this process later
    assert "it is no regular file" in " ".join(capsys.readouterr().err.split())


def test_a_link_to_a_config_is_followed(tmp_path: Path) -> None:
    """Config maps of Kubernetes are links."""
    (tmp_path / "real").mkdir()
    (tmp_path / "quorum.toml").symlink_to(write(tmp_path / "real"))
    assert load_config(tmp_path / "quorum.toml").node(11).node_id == 11


def test_what_the_shell_pipes_in_is_read() -> None:
    """`-c <(make-config)`, and `-c /dev/stdin`: the writer is there."""
    reader, writer = os.pipe()
    os.write(writer, SMALL.encode())
    os.close(writer)
    try:
        assert load_config(Path(f"/dev/fd/{reader}")).node(11).node_id == 11
    finally:
        os.close(reader)


def test_all_impossible_values_of_a_file_are_named_at_once(tmp_path: Path) -> None:
    path = tmp_path / "cluster.toml"
    path.write_text(
        f"[defaults]\nlistener.security.protocol.map = [[1]]\n[[nodes]]\nnode.id = {2**70}\n"
        '[[nodes]]\nnode.id = 2\nlog.dirs = "a\\u0000b"\n'
    )
    with pytest.raises(ConfigError) as refused:
        load_config(path)
    assert {2, 4, 7} <= {each.place.line for each in refused.value.problems}


NODE = '[[nodes]]\nnode.id = {}\nprocess.roles = "broker"\n'


@pytest.mark.parametrize("name", ["quorum.toml", "server.properties", "client.properties"])
def test_a_file_that_is_longer_than_any_config_is_not_read(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / name
    with path.open("wb") as file:
        file.truncate(1 << 40)  # it takes no space on the disk
    option = "--command-config" if name.startswith("client") else "-c"
    more = ("-b", "127.0.0.1:1") if name.startswith("client") else ()
    assert run(["topics", "list", *more, option, str(path)]) == 2
    assert "more than 1,048,576 bytes" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(
            SMALL + "".join(NODE.format(each) for each in range(100, 1_100)), "1,002 nodes", id="nodes"
        ),
        pytest.param(
            SMALL.replace("[defaults]\n", "[defaults]\n" + "".join(f"a{n}.b = 1\n" for n in range(2_001))),
            "2,004 keys",
            id="defaults",
        ),
        pytest.param(SMALL + f"{'a.' * 200_000}a = 1\n", "nested too deeply", id="dots"),
        pytest.param(SMALL + f"a = {{{'a . ' * 100_000}a = 1}}\n", "nested too deeply", id="inline"),
        pytest.param(SMALL + f"[{'nodes.' * 100_000}a]\n", "nested too deeply", id="header"),
    ],
)
def test_more_than_a_config_can_have_is_refused_at_once(tmp_path: Path, text: str, said: str) -> None:
    (message,) = messages(tmp_path, text)
    assert said in message


def test_only_the_first_unknown_keys_are_reported(tmp_path: Path) -> None:
    """To find what each was meant to be takes some milliseconds: a file of 12,000 took half a minute."""
    found = messages(tmp_path, SMALL + "".join(f"a.b{n} = 1\n" for n in range(5_000)))
    assert len(found) == 101
    assert "more than 100 unknown keys" in found[-1]


def test_a_long_line_within_a_text_is_looked_at_once(tmp_path: Path) -> None:
    """Where a key is written is found by a pattern, which takes long for a line that is nearly one."""
    text = SMALL + 'broker.rack = """\n' + "-" * 500_000 + "\n[" + " " * 400_000 + '\n"""\n'
    load_config(write(tmp_path, text))
