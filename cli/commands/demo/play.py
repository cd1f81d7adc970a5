"""What `kquorum demo` does: start the nodes, play each step, and leave nothing running."""

import shutil
import time
from pathlib import Path

from kquorum.cli.commands.audit.java import check_java
from kquorum.cli.commands.demo import steps
from kquorum.cli.commands.demo.stage import Stage
from kquorum.cli.failures import CliError, ExitStatus
from kquorum.cli.output import console
from kquorum.cli.processes import NodeFailed, NodeGroup, NodeProcess
from kquorum.node.config.load import load_config
from kquorum.node.config.materialise import with_free_ports
from kquorum.node.config.model import ClusterConfig
from kquorum.storage.folder_permissions import keep_files_private

DATA_FOLDER = "cluster"
REAL_LOGS_BESIDE = Path("../shared/real-logs")


def play(config: Path, log_dir: str, out: Path) -> None:
    """Raises CliError where the demo cannot begin, or a node fails."""
    began = time.monotonic()
    keep_files_private()
    check_java()
    real_logs = _real_logs(log_dir)
    out = out.absolute()
    _empty(out)
    load_config(config)
    config_path = with_free_ports(config, out / "quorum.toml", data_dir=out / DATA_FOLDER)
    cluster = load_config(config_path)
    nodes = _nodes(config_path, cluster, out)
    stage = Stage(console(markup=True), config_path, cluster, nodes, out)
    with nodes:
        try:
            _play_steps(stage, real_logs)
        except NodeFailed as error:
            raise CliError(str(error), status=ExitStatus.FAILED) from error
    stage.say(
        f"\n[bold green]the demo is done[/] in {time.monotonic() - began:.0f} s; nothing was left running"
    )
    stage.say(f"tables and logs are in {out.name}/: try `kquorum log dump {out.name}/{DATA_FOLDER}`")


def _play_steps(stage: Stage, real_logs: Path | None) -> None:
    steps.start_nodes(stage)
    steps.show_quorum(stage)
    steps.use_a_real_client(stage)
    steps.kill_the_leader(stage)
    with steps.starting_spark(real_logs):  # while the session of the broker that is killed runs out
        steps.kill_a_broker(stage)
        steps.read_the_log(stage)
        steps.audit(stage, real_logs)


def _real_logs(log_dir: str) -> Path | None:
    if log_dir:
        folder = Path(log_dir)
        if not folder.exists():
            raise CliError(f"LOG_DIR is {log_dir}, which does not exist", status=ExitStatus.USAGE)
        return folder.absolute()
    return REAL_LOGS_BESIDE.absolute() if REAL_LOGS_BESIDE.is_dir() else None


def _empty(out: Path) -> None:
    """Only a folder that an earlier demo made is emptied."""
    if out.exists() and any(out.iterdir()):
        if not (out / "quorum.toml").exists():
            raise CliError(
                f"{out} holds something else; name another folder with --out", status=ExitStatus.USAGE
            )
        shutil.rmtree(out)
    out.mkdir(parents=True, exist_ok=True)


def _nodes(config_path: Path, cluster: ClusterConfig, out: Path) -> NodeGroup:
    processes = [
        NodeProcess(config_path, node.node_id, out / "output" / f"node-{node.node_id}.txt")
        for node in cluster.nodes
    ]
    return NodeGroup(processes, stop_first=[node.node_id for node in cluster.brokers])
