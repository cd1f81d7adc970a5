"""`kquorum doctor`: the config, exit statuses, and clusters that are away."""

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest

from kquorum.cli.main import run
from kquorum.node.config.materialise import free_ports
from tests.support.administered_cluster import AdministeredCluster


def write_config(folder: Path, *lines: str, node: str = "", port: int | None = None) -> Path:
    path = folder / "quorum.toml"
    listener = free_ports(1)[0] if port is None else port
    path.write_text(
        "\n".join(
            [
                '[cluster]\n"cluster.id" = "4L6g3nShT-eMCtK--X86sw"\n[defaults]',
                '"controller.listener.names" = "CONTROLLER"',
                *lines,
                '[[nodes]]\n"node.id" = 1\n"process.roles" = "controller"',
                f'"listeners" = "CONTROLLER://127.0.0.1:{listener}"',
                f'"log.dirs" = "{folder}/node-1"',
                node,
            ]
        )
        + "\n"
    )
    path.chmod(0o600)
    return path


def doctor(path: Path, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, Any]:
    capsys.readouterr()
    status = run(["doctor", "-c", str(path), "--json", "--timeout-ms", "500", *options])
    return status, json.loads(capsys.readouterr().out)


def test_a_config_that_cannot_be_used_has_a_finding_for_each_rule(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_config(tmp_path, '"num.partition" = 3', '"log.retention.hours" = "soon"')
    status, report = doctor(path, capsys)
    assert status == 2
    assert {each["check"] for each in report["findings"]} == {"config"}
    assert len(report["findings"]) >= 2
    assert any("num.partition" in each["found"] for each in report["findings"])
    assert all(str(path) in each["place"] for each in report["findings"])


def test_nodes_that_are_away_are_named_with_the_command_that_starts_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_config(tmp_path)
    status, report = doctor(path, capsys)
    assert status == 2
    [silent] = [each for each in report["findings"] if each["check"] == "nodes"]
    assert silent["place"] == "node 1"
    assert f"kquorum start -c {path} --node 1" in silent["remedy"]
    assert {"quorum", "nodes"} <= {each["check"] for each in report["findings"]}
    assert "partitions" in report["not_checked"]


def test_offline_asks_no_node(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_config(tmp_path)
    status, report = doctor(path, capsys, "--offline")
    assert status == 0
    assert "nodes" not in report["checked"]
    assert "folders" in report["not_checked"]
    assert run(["format", "-c", str(path)]) == 0
    status, report = doctor(path, capsys, "--offline", "--deep")
    assert (status, report["verdict"]) == (0, "well")
    assert report["checked"]["folders"] == "1 folder, read whole"
    (tmp_path / "node-1").chmod(0o755)
    status, report = doctor(path, capsys, "--offline")
    assert (status, report["verdict"]) == (1, "warnings")


def test_a_config_with_a_password_is_its_owners(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_config(tmp_path, '"delegation.token.secret.key" = "geheim"')
    assert doctor(path, capsys, "--offline")[0] == 0
    path.chmod(0o644)
    status, report = doctor(path, capsys, "--offline")
    assert status == 1
    assert f"`chmod 600 {path}`" in [each["remedy"] for each in report["findings"]]


def test_the_table_names_what_was_not_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_config(tmp_path)
    capsys.readouterr()
    assert run(["doctor", "-c", str(path), "--timeout-ms", "500"]) == 2
    told = capsys.readouterr().out
    assert "not checked" in told
    assert "problem: node 1" in told
    assert told.rstrip().endswith("problems")


def test_brokers_that_the_config_does_not_have_are_asked_for_partitions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = AdministeredCluster(
        replicas={("a", 0): (11, 12), ("a", 1): (11, 12), ("b", 0): (11, 12)},
        isr={("a", 0): (11,), ("b", 0): (11,)},
        leaders={("a", 1): -1},
        configs={(2, "a"): {"min.insync.replicas": "2"}},
        fenced={13},
    )
    with cluster.served() as node:
        status, report = doctor(write_config(tmp_path), capsys, "-b", node.address)
    assert status == 2
    assert {
        (each["severity"], each["place"])
        for each in report["findings"]
        if each["check"] in ("partitions", "brokers")
    } == {("problem", "a-0"), ("problem", "a-1"), ("warning", "b-0"), ("problem", "broker 13")}


@pytest.mark.parametrize("denied", [".", "node-1", "node-1/__cluster_metadata-0"])
@pytest.mark.parametrize("options", [(), ("--offline",), ("--offline", "--deep")])
def test_folders_of_another_user_are_a_warning(
    denied: str,
    options: tuple[str, ...],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A node's folders are closed to all but its user, and so may be the folder around them."""
    data = tmp_path / "data"
    (data / "node-1" / "__cluster_metadata-0").mkdir(parents=True)
    (data / "node-1" / "meta.properties").write_text(
        "version=1\nnode.id=1\ncluster.id=4L6g3nShT-eMCtK--X86sw\ndirectory.id=AAAAAAAAAAAAAAAAAAAAAQ\n"
    )
    (data / "node-1").chmod(0o700)
    path = write_config(tmp_path)
    path.write_text(path.read_text().replace(f"{tmp_path}/node-1", f"{data}/node-1"))
    closed = data / denied

    def closing(call: Any) -> Any:
        def called(place: Any, *arguments: Any, **fields: Any) -> Any:
            if isinstance(place, str | Path) and closed in Path(place).parents:
                raise PermissionError(errno.EACCES, "Permission denied", str(place))
            is_list = call in lists
            if is_list and isinstance(place, str | Path) and Path(place) == closed:
                raise PermissionError(errno.EACCES, "Permission denied", str(place))
            return call(place, *arguments, **fields)

        return called

    lists = (os.listdir, os.scandir)
    for name in ("stat", "listdir", "scandir"):
        monkeypatch.setattr(os, name, closing(getattr(os, name)))
    status, report = doctor(path, capsys, *options)
    assert status == (2 if not options else 1)
    [found] = [each for each in report["findings"] if each["check"] == "folders"]
    assert found["severity"] == "warning"
    assert "Permission denied" in found["found"]
    assert "disks" not in {each["check"] for each in report["findings"]}
