"""One controller's exchange, seen from its machine: before, while its program is stopped, and afterwards.

Between the two programs the state of the folder is hashed at a committed offset, and at the same offset once more when
the other program has gone on: a program that read the folder differently is found at once.
"""

import asyncio
import json
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final, Self

from kquorum.cli.commands.log.files import the_log, within_its_end
from kquorum.cli.commands.log.states import Moment, state_at
from kquorum.cli.commands.migrate.advice import MigrationView, Program
from kquorum.cli.commands.migrate.observing import observe, program_at
from kquorum.cli.commands.recover.reading import read_survivor
from kquorum.cli.failures import CliError, ExitStatus
from kquorum.cli.output import complain
from kquorum.metadata.features import SUPPORTED_FEATURES
from kquorum.metadata.image.metadata_version import METADATA_VERSION
from kquorum.metadata.state_hash.image_hash import hash_of_image, state_hash_text
from kquorum.node.config.addresses import HostPort, reachable
from kquorum.node.config.model import NodeConfig
from kquorum.private_files import replace_whole
from kquorum.raft.adapters.file_log import FOLDER_NAME
from kquorum.regular_files import read_regular

NOTE: Final = "kquorum-migration.json"


class Phase(StrEnum):
    """Where a controller stands. A step is done when the other program follows and has the same state."""

    BEFORE = "before"
    STOPPED = "stopped"
    AFTER = "after"


@dataclass(frozen=True, slots=True, kw_only=True)
class HashNote:
    """The state at `offset`, the last one that counts, as the stopped program left it."""

    node_id: int
    target: str
    offset: int
    state_hash: str

    @classmethod
    def read(cls, folder: Path) -> Self | None:
        """None without a note. Raises CliError for one that is damaged."""
        path = folder / NOTE
        try:
            return cls(**json.loads(read_regular(path)))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError) as error:
            raise CliError(
                f"{path} is damaged ({error}): remove it; the hashes before and after are not compared then",
                status=ExitStatus.DAMAGED_INPUT,
            ) from error

    def write(self, folder: Path) -> None:
        replace_whole(folder / NOTE, (json.dumps(asdict(self)) + "\n").encode(), 0o600)


def own_address(node: NodeConfig) -> HostPort:
    listener = node.controller_listeners[0]
    return HostPort(*reachable(listener.host, listener.port))


def phase_of(node: NodeConfig, target: Program) -> Phase:
    """By what listens at the controller's address."""
    program = asyncio.run(program_at(node.node_id, own_address(node)))
    if program is Program.NONE:
        return Phase.STOPPED
    return Phase.AFTER if program is target else Phase.BEFORE


def note_state(node: NodeConfig, target: Program, view: MigrationView | None) -> HashNote:
    """For the stopped controller: check its folder, and write down its state. `view` is None where the node was the
    only voter. Raises CliError for a folder that the other program must not go on with."""
    folder = node.metadata_log_dir
    found = read_survivor(folder)
    if found.damage is not None:
        raise CliError(
            f"{folder} must not go on with {target}: {found.damage}. Start the program that wrote it again, or look "
            "with `kquorum log verify`",
            status=ExitStatus.DAMAGED_INPUT,
        )
    low, high = SUPPORTED_FEATURES[METADATA_VERSION]
    if target is Program.KQUORUM and not low <= found.metadata_version <= high:
        raise CliError(
            f"{folder} has metadata.version {found.metadata_version}, and this version of kquorum runs {low} to {high}",
            status=ExitStatus.FOLDER_REFUSED,
        )
    # What the folder has beyond the high watermark may be cut off by the leader.
    end = found.end_offset if view is None else min(found.end_offset, view.high_watermark)
    state_hash = hash_at(folder, end)
    if state_hash is None:
        # The log begins behind the high watermark that the leader knows: the newest state is what there is.
        end, state_hash = found.end_offset, found.state_hash
    note = HashNote(node_id=node.node_id, target=target, offset=end - 1, state_hash=state_hash)
    note.write(folder)
    return note


def compare_state(node: NodeConfig, note: HashNote) -> str | None:
    """After the exchange: the hash at the note's offset; None where the log does not reach back to it any more. Raises
    CliError for another state."""
    now = hash_at(node.metadata_log_dir, note.offset + 1)
    if now is not None and now != note.state_hash:
        raise CliError(
            f"STATE DIFFERS: at offset {note.offset} controller {node.node_id} had {note.state_hash} before the "
            f"exchange and has {now} now. Go no further; stop it, start the former program again, and compare with "
            "`kquorum log diff`",
            status=ExitStatus.FAILED,
        )
    return now


def hash_at(folder: Path, end_offset: int) -> str | None:
    """Of the state below `end_offset`; None where the folder has no such state any more."""
    log = within_its_end(the_log(folder / FOLDER_NAME), _warn, keeps_newest=True)
    try:
        state = state_at(log, Moment(end_offset), _warn)
    except CliError:
        return None
    return state_hash_text(hash_of_image(state.image))


async def view_or_none(addresses: tuple[HostPort, ...], timeout_ms: int) -> MigrationView | None:
    """None while there is no leader."""
    try:
        return await observe(addresses, timeout_ms)
    except CliError as error:
        if error.status is not ExitStatus.UNREACHABLE:
            raise
        return None


def _warn(message: str) -> None:
    complain(message, style="yellow", label="warning")
