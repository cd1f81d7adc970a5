"""The work of `kquorum doctor`: the config, the running cluster, the folders on this machine."""

from pathlib import Path

from kquorum.cli.clients.cluster_client import run_asking
from kquorum.cli.clients.security import remember_cluster
from kquorum.cli.commands.doctor.config_check import broken, check_config
from kquorum.cli.commands.doctor.findings import Check, Report
from kquorum.cli.commands.doctor.folders import check_folder, folders_of, may_be_here
from kquorum.node.config.errors import ConfigError
from kquorum.node.config.load import load_config
from kquorum.node.config.model import ClusterConfig
from kquorum.wire.wording import counted


def examine(
    config: Path,
    data_dir: Path | None,
    bootstrap_server: str | None,
    timeout_ms: int,
    *,
    deep: bool,
    offline: bool,
) -> Report:
    """A config that cannot be used is the only finding then: nothing else can be found with it."""
    report = Report()
    try:
        cluster = load_config(config, data_dir=data_dir)
    except ConfigError as error:
        report.add(Check.CONFIG, str(config), broken(error))
        return report
    remember_cluster(cluster)
    report.add(Check.CONFIG, counted(len(cluster.nodes), "node"), check_config(cluster))
    if not offline:
        from kquorum.cli.commands.doctor.gathering import gather
        from kquorum.cli.commands.doctor.judging import judge

        judge(run_asking(gather(cluster, config, bootstrap_server, timeout_ms)), report)
    _folders(cluster, report, deep=deep)
    return report


def _folders(cluster: ClusterConfig, report: Report, *, deep: bool) -> None:
    here = [(node, folder) for node in cluster.nodes for folder in folders_of(node) if may_be_here(folder)]
    if not here:
        report.skip(Check.FOLDERS, "none of the folders is on this machine: run it there too")
        return
    found = [each for node, folder in here for each in check_folder(node, folder, deep=deep)]
    report.add(Check.FOLDERS, counted(len(here), "folder") + (", read whole" if deep else ""), found)
