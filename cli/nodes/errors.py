"""Why a node cannot start or go on, where no part below has a word for it."""

from pathlib import Path

from cli.errors import CliError
from cli.exit_status import ExitStatus
from raft.adapters.errors import DamagedInput


class BootstrapDamaged(DamagedInput):
    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path} is damaged: {reason}; restore the file, or format the folder afresh")


class NotRegistered(CliError):
    """The broker gave up looking for a controller that takes it."""

    def __init__(self, broker_id: int, reason: str) -> None:
        super().__init__(
            f"broker {broker_id} was not admitted to the cluster: {reason}; check that a majority of the voters runs, "
            "that controller.quorum.voters or controller.quorum.bootstrap.servers names some of them, and the log file "
            "for what they answered",
            status=ExitStatus.UNREACHABLE,
        )


class LogBeginsLater(CliError):
    """Its beginning is in a snapshot, which this node could not read: it would go on from an empty state."""

    def __init__(self, folder: Path, log_start_offset: int) -> None:
        super().__init__(
            f"{folder} begins at offset {log_start_offset}: what stood before is in a snapshot, and nodes "
            "cannot start from one yet; start this folder with Apache Kafka, or begin this node with an empty one",
            status=ExitStatus.FOLDER_REFUSED,
        )


class CombinedRoles(CliError):
    def __init__(self, node_id: int) -> None:
        super().__init__(
            f"node {node_id} has process.roles=broker,controller; one process for both roles is not supported yet: "
            "make it two nodes, one of each role",
            status=ExitStatus.USAGE,
        )


class AssertionsOff(CliError):
    def __init__(self) -> None:
        super().__init__(
            "a node does not run under `python -O`: its assertions are what stops it before it harms the log",
            status=ExitStatus.USAGE,
        )
