"""What is wrong with the config itself, before any node is asked."""

import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from kquorum.cli.commands.doctor.findings import Check, Finding, Severity
from kquorum.cli.commands.doctor.folders import is_folder
from kquorum.node.config.errors import ConfigError
from kquorum.node.config.load import read_raw
from kquorum.node.config.model import ClusterConfig, NodeConfig
from kquorum.node.config.security_keys import is_secret_key

_PRIVILEGED: Final = 1024


def broken(error: ConfigError) -> Iterator[Finding]:
    """One for each broken rule, such as an unknown key or a port that two nodes have."""
    for problem in error.problems:
        yield _finding(Severity.PROBLEM, str(problem.place), problem.message, "correct the config")


def check_config(cluster: ClusterConfig) -> Iterator[Finding]:
    for warning in cluster.warnings:
        yield _finding(Severity.WARNING, str(cluster.path), str(warning), "correct the config")
    yield from _exposed(cluster)
    for node in cluster.nodes:
        yield from _of_node(node, cluster.path)


def _exposed(cluster: ClusterConfig) -> Iterator[Finding]:
    holds_secrets = any(is_secret_key(key) for node in read_raw(cluster.path).nodes for key in node.keys)
    try:
        mode = stat.S_IMODE(cluster.path.stat().st_mode)
    except OSError:
        return
    if holds_secrets and mode & (stat.S_IRGRP | stat.S_IROTH):
        yield _finding(
            Severity.WARNING,
            str(cluster.path),
            f"it holds passwords or keys, and others may read it (mode {mode:03o})",
            f"`chmod 600 {cluster.path}`",
        )


def _of_node(node: NodeConfig, path: Path) -> Iterator[Finding]:
    place = f"{path}, node {node.node_id}"
    for listener in node.listeners:
        if 0 < listener.port < _PRIVILEGED:
            yield _finding(
                Severity.NOTE,
                place,
                f"{listener} has a privileged port",
                "give the node CAP_NET_BIND_SERVICE, or take a port from 1024 up",
            )
    for folder in dict.fromkeys((node.metadata_log_dir, *node.log_dirs)):
        if is_folder(folder) is False:
            yield _finding(Severity.PROBLEM, place, f"{folder} is a file, not a folder", "correct log.dirs")
    controllers = {listener.name for listener in node.listeners} if node.is_controller else set()
    if node.is_controller and node.kquorum_grpc_listener is None and controllers:
        yield _finding(
            Severity.NOTE,
            place,
            "it has no kquorum.grpc.listener: its clock, disks and open files are not known from elsewhere",
            "set kquorum.grpc.listener, on loopback or with TLS (docs/grpc.md)",
        )


def _finding(severity: Severity, place: str, found: str, remedy: str) -> Finding:
    return Finding(check=Check.CONFIG, severity=severity, place=place, found=found, remedy=remedy)
