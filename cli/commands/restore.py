"""`kquorum restore`: a quorum of one from a backup, fenced off from the quorum that the backup was made of."""

import json
import os
import shutil
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from kquorum.cli.command_tree import Command, Panel
from kquorum.cli.options import AsJson, ConfigPath, Reason

if TYPE_CHECKING:
    from kquorum.cli.commands.recover.survey import Survivor
    from kquorum.node.config.model import NodeConfig


def restore(
    backup: Annotated[
        str,
        typer.Argument(
            metavar="BACKUP", help="A folder that `kquorum backup` made, or its URL in an object store."
        ),
    ],
    node: Annotated[int, typer.Option("--node", help="The controller of the config that begins with it.")],
    accepts_loss: Annotated[
        bool,
        typer.Option(
            "--i-accept-the-loss",
            help="All changes after the backup are given up, and the old controllers will never start again.",
        ),
    ] = False,
    config: ConfigPath = Path("quorum.toml"),
    reason: Reason = None,
    as_json: AsJson = False,
) -> None:
    """Make a controller of the config the only voter of a quorum with the metadata of a backup.

    Every file is compared with the backup's manifest, and the state that is replayed with its hash. The controller's
    folder must not exist yet, or be empty. Cluster id and topic ids are those of the backup. As after `kquorum recover
    run`, a controller of the old quorum is fenced when it learns of this one, and the other controllers are added, each
    with an empty folder. Every broker needs an empty __cluster_metadata-0, for its log is ahead of the backup.
    """
    import tempfile

    from kquorum.cli.clients.object_store import download, is_url

    if not is_url(backup):
        _restore(Path(backup), node, config, reason, accepts_loss=accepts_loss, as_json=as_json)
        return
    with tempfile.TemporaryDirectory(prefix="kquorum-restore-") as here:
        copied = download(backup, Path(here))
        _restore(copied, node, config, reason, accepts_loss=accepts_loss, as_json=as_json)


def _restore(
    backup: Path, node: int, config: Path, reason: str | None, *, accepts_loss: bool, as_json: bool
) -> None:
    from kquorum.cli.commands.recover.running import recover
    from kquorum.cli.commands.recover.showing import say_next
    from kquorum.cli.commands.recover.survey import Plan
    from kquorum.cli.failures import CliError, ExitStatus
    from kquorum.cli.output import print_json, say
    from kquorum.node.config.load import load_config
    from kquorum.node.endpoints import controller_endpoints

    manifest = check_backup(backup)
    chosen = load_config(config).node(node)
    if not chosen.is_controller:
        raise CliError(f"node {node} is no controller: only a controller can vote", status=ExitStatus.USAGE)
    _check_empty(chosen.metadata_log_dir)
    if chosen.cluster_id not in (None, manifest["cluster_id"]):
        raise CliError(
            f"the backup is of cluster {manifest['cluster_id']}, and {config} says {chosen.cluster_id}: correct "
            "cluster.id there",
            status=ExitStatus.USAGE,
        )
    _check_other_folders(chosen, manifest["cluster_id"])
    if not accepts_loss:
        raise CliError(
            f"nothing was changed: all changes from offset {manifest['end_offset']} on (after "
            f"{_time_of(manifest)}) are given up; repeat the command with --i-accept-the-loss",
            status=ExitStatus.USAGE,
        )
    restored = _copy_in(backup, manifest, chosen)
    plan = Plan(best=restored, survivors=(restored,), voters=restored.voters, left=(), ahead=())
    how = f"restored from a backup of node {manifest['node_id']}"
    done = recover(plan, controller_endpoints(chosen)[:1], reason, how=how)
    if as_json:
        print_json(
            {
                "node_id": done.node_id,
                "folder": str(done.folder),
                "epoch": done.epoch,
                "offset": done.offset,
                "state_hash": done.state_hash,
                "is_dynamic": done.is_dynamic,
            }
        )
        return
    say(
        f"restored: {done.folder} has the state {done.state_hash} of the backup; epoch {done.epoch} begins at "
        f"{done.offset}"
    )
    say_next(done)
    say("every broker needs an empty __cluster_metadata-0 before it starts: its log is ahead of the backup")


def check_backup(backup: Path) -> dict[str, Any]:
    """The manifest of a backup whose files are as they were. Raises CliError.

    Another person may have made the folder: a link could lead to any file of this machine, and a pipe never ends.
    """
    from kquorum.cli.commands.backup import MANIFEST, digest
    from kquorum.cli.failures import CliError, ExitStatus

    manifest = _read_manifest(backup / MANIFEST)
    files = manifest["files"]
    found = _files_in(backup)
    found.pop(MANIFEST, None)
    if missing := sorted(files.keys() - found.keys()):
        raise CliError(f"{backup}: {missing[0]} is missing", status=ExitStatus.DAMAGED_INPUT)
    if more := sorted(found.keys() - files.keys()):
        raise CliError(f"{backup}: {more[0]} does not belong to the backup", status=ExitStatus.DAMAGED_INPUT)
    for name, path in sorted(found.items()):
        if digest(path) != files[name]:
            raise CliError(
                f"{path} is not what was backed up: its SHA-256 differs; use another copy",
                status=ExitStatus.DAMAGED_INPUT,
            )
    return manifest


def _read_manifest(path: Path) -> dict[str, Any]:
    from kquorum.cli.commands.backup import FORMAT
    from kquorum.cli.failures import CliError, ExitStatus
    from kquorum.regular_files import read_regular

    def damaged(reason: object) -> CliError:
        return CliError(f"{path} is damaged: {reason}", status=ExitStatus.DAMAGED_INPUT)

    try:
        manifest: dict[str, Any] = json.loads(read_regular(path))
        version = manifest["format"]
        if version == FORMAT:
            manifest["files"] = dict(manifest["files"])
            for name, kind in _KINDS.items():
                if type(manifest[name]) is not kind:
                    raise ValueError(f"{name} is no {kind.__name__}")
            if not manifest["cluster_id"].isprintable():
                raise ValueError("cluster_id has control characters")
            last_ms = manifest.get("last_timestamp_ms")
            if last_ms is not None and type(last_ms) is not int:
                raise ValueError("last_timestamp_ms is no int")
    except FileNotFoundError:
        raise CliError(
            f"{path.parent} has no {path.name}: give a folder that `kquorum backup` made",
            status=ExitStatus.USAGE,
        ) from None
    except OSError as error:
        raise damaged(error.strerror) from None
    except KeyError as error:
        raise damaged(f"it lacks {error}") from None
    except (ValueError, TypeError, RecursionError) as error:
        raise damaged(error) from None
    if version != FORMAT:
        raise CliError(
            f"{path} has format {version}, and this version reads {FORMAT}", status=ExitStatus.DAMAGED_INPUT
        )
    return manifest


# In the manifest of a backup, with what is read of it.
_KINDS: Final = {"cluster_id": str, "node_id": int, "end_offset": int, "state_hash": str}


def _files_in(backup: Path) -> dict[str, Path]:
    """By their names below the folder. Raises CliError for what is neither a file nor a folder."""
    from kquorum.cli.failures import CliError, ExitStatus

    found: dict[str, Path] = {}
    for path in sorted(backup.rglob("*")):
        kind = path.lstat().st_mode
        if stat.S_ISREG(kind):
            found[str(path.relative_to(backup))] = path
        elif not stat.S_ISDIR(kind):
            raise CliError(
                f"{path} is no regular file, and a backup has only files and folders: remove it, or use another copy",
                status=ExitStatus.DAMAGED_INPUT,
            )
    return found


def _check_empty(folder: Path) -> None:
    from kquorum.cli.failures import CliError, ExitStatus

    if folder.exists() and any(folder.iterdir()):
        raise CliError(
            f"{folder} is not empty: move it away first, and keep it, for it may hold changes that the backup lacks",
            status=ExitStatus.FOLDER_REFUSED,
        )


def _check_other_folders(node: "NodeConfig", cluster_id: str) -> None:
    """The folders of records may be there: they keep what they hold. Raises WrongFolder, MetaPropertiesDamaged."""
    from kquorum.node.formatting import data_folders
    from kquorum.storage.meta_properties import FILE_NAME, check_meta_properties, read_meta_properties

    for folder in data_folders(node)[1:]:
        if (folder / FILE_NAME).exists():
            properties = read_meta_properties(folder)
            check_meta_properties(folder, properties, cluster_id=cluster_id, node_id=node.node_id)


def _copy_in(backup: Path, manifest: dict[str, Any], node: "NodeConfig") -> "Survivor":
    """The node's folders, whole or without meta.properties; its metadata is compared with the manifest. A folder of
    records that is there keeps its directory id, by which the metadata say where replicas lie."""
    from dataclasses import replace

    from kquorum.cli.commands.backup import make_durable
    from kquorum.cli.commands.recover.reading import read_survivor
    from kquorum.cli.failures import CliError, ExitStatus
    from kquorum.node.formatting import data_folders, new_uuid, now_ms
    from kquorum.raft.adapters.file_log import FOLDER_NAME
    from kquorum.storage.folder_permissions import make_private_folder
    from kquorum.storage.meta_properties import FILE_NAME, MetaProperties, write_meta_properties

    source = backup / f"node-{manifest['node_id']}"
    for folder in data_folders(node):
        make_private_folder(folder)
        if folder == node.metadata_log_dir:
            make_private_folder(folder / FOLDER_NAME)
            paths = [*_files_in(source / FOLDER_NAME).values(), source / "bootstrap.checkpoint"]
            for path in filter(Path.exists, paths):
                target = folder / path.relative_to(source)
                make_private_folder(target.parent)
                _copy(path, target)
            # Only the end of a log is flushed later: what precedes it counts as durable.
            make_durable(folder)
        elif (folder / FILE_NAME).exists():
            continue
        properties = MetaProperties(
            cluster_id=manifest["cluster_id"], node_id=node.node_id, directory_id=new_uuid()
        )
        write_meta_properties(folder, properties, now_ms())
    restored = replace(read_survivor(node.metadata_log_dir), is_lost=False)
    if (restored.damage, restored.state_hash, restored.end_offset) != (
        None,
        manifest["state_hash"],
        manifest["end_offset"],
    ):
        raise CliError(
            f"{node.metadata_log_dir} does not have the state of the backup "
            f"({restored.damage or restored.state_hash}): "
            "remove it, and use another copy of the backup",
            status=ExitStatus.DAMAGED_INPUT,
        )
    return restored


def _copy(source: Path, target: Path) -> None:
    """What was compared with the manifest, to a file that only its owner reads."""
    from kquorum.regular_files import open_regular

    with os.fdopen(open_regular(source), "rb") as read:
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as written:
            shutil.copyfileobj(read, written)


def _time_of(manifest: dict[str, Any]) -> str:
    from kquorum.cli.output import utc_text

    last_ms = manifest.get("last_timestamp_ms")
    return "the backup" if last_ms is None else f"{utc_text(last_ms)} UTC"


COMMAND = Command(
    run=restore,
    summary="Begin a quorum of one controller with the metadata of a backup.",
    panel=Panel.RUN,
    place=12,
    examples={"": ("kquorum restore BACKUP --node 1 -c quorum.toml --i-accept-the-loss",)},
)
