"""`kquorum backup`: a verified copy of a running node's metadata log, from which `kquorum restore` makes a quorum
again."""

import hashlib
import json
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kquorum.cli.command_tree import Command, Panel
from kquorum.cli.options import AsJson, GrpcListeners, MaybeConfigPath

if TYPE_CHECKING:
    from kquorum.cli.commands.recover.survey import Survivor
    from kquorum.node.config.addresses import HostPort

MANIFEST = "kquorum-backup.json"
FORMAT = 1


def backup(
    to: Annotated[
        str,
        typer.Argument(
            metavar="FOLDER",
            help="A new folder for the backup is made in this one; or in an object store (s3://bucket/prefix).",
        ),
    ],
    node: Annotated[
        int | None, typer.Option("--node", help="Copy from this node; the default is the first that answers.")
    ] = None,
    config: MaybeConfigPath = None,
    grpc: GrpcListeners = None,
    as_json: AsJson = False,
) -> None:
    """Copy the committed metadata of a running cluster into a folder, and verify the copy.

    The copy is consistent: everything up to one committed offset, replayed once and hashed. Nodes go on meanwhile. It
    holds secrets (SCRAM credentials, token secrets), so only its owner may read it. `kquorum restore` checks every
    byte.

    An object store is addressed as s3://bucket/prefix, with the credentials of the environment; AWS_ENDPOINT_URL names
    an S3-compatible one. The manifest is uploaded last.
    """
    import tempfile

    from kquorum.cli.clients.addresses import grpc_addresses
    from kquorum.cli.clients.object_store import is_url, upload
    from kquorum.cli.output import print_json, say

    addresses = grpc_addresses(config, grpc, node_id=node, needed_by="`kquorum backup`")
    folder: Path | str
    if is_url(to):
        with tempfile.TemporaryDirectory(prefix="kquorum-backup-") as here:
            made, manifest = _copy_from_any(addresses, Path(here))
            folder = upload(made, to, last=MANIFEST)
    else:
        folder, manifest = _copy_from_any(addresses, Path(to))
    if as_json:
        print_json({"folder": str(folder), **manifest})
    else:
        files = manifest["files"]
        assert isinstance(files, dict)
        say(
            f"{folder}: cluster {manifest['cluster_id']}, offsets below {manifest['end_offset']}, epoch "
            f"{manifest['epoch']}, state {manifest['state_hash']}, {len(files)} files, verified"
        )


def _copy_from_any(addresses: "tuple[HostPort, ...]", to: Path) -> tuple[Path, dict[str, object]]:
    """From the first node that answers. Raises CliError."""
    import asyncio

    from kquorum.cli.commands.audit.live_log import LiveCopy, tell
    from kquorum.cli.failures import CliError, ExitStatus
    from kquorum.storage.durable_files import sync_folder
    from kquorum.storage.folder_permissions import make_private_folder

    moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    part = to / f"{moment}.part"
    target = to / moment
    if part.exists() or target.exists():
        raise CliError(f"{target} exists already: wait a second", status=ExitStatus.USAGE)
    failures = []
    for address in addresses:
        make_private_folder(part)
        try:
            copied = asyncio.run(LiveCopy(address, part, tell).catch_up())
        except CliError as error:
            if error.status is not ExitStatus.UNREACHABLE:
                raise
            failures.append(str(error))
            # What came before the connection was lost is no part of another node's copy.
            shutil.rmtree(part)
            continue
        manifest = _verified(copied)
        (part / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n")
        make_durable(part)
        part.rename(target)
        sync_folder(to)
        return target, manifest
    raise CliError(f"no node could be copied from: {'; '.join(failures)}", status=ExitStatus.UNREACHABLE)


def _verified(copied: Path) -> dict[str, object]:
    """The manifest of a copy. Raises CliError for one from which no state can be made."""
    from kquorum.cli.commands.recover.reading import read_survivor
    from kquorum.cli.failures import CliError, ExitStatus

    found = read_survivor(copied)
    if found.damage is not None or found.end_offset == 0:
        raise CliError(
            f"the copy in {copied} cannot be used: {found.damage or 'it holds no record'}; if the node was just "
            "taking a "
            "snapshot, make the backup again",
            status=ExitStatus.DAMAGED_INPUT,
        )
    return manifest_of(found, copied.parent)


def manifest_of(found: "Survivor", root: Path) -> dict[str, object]:
    """What is in the backup `root`: its state, and the SHA-256 of each file."""
    return {
        "format": FORMAT,
        "cluster_id": found.cluster_id,
        "node_id": found.node_id,
        "end_offset": found.end_offset,
        "epoch": found.epoch,
        "last_timestamp_ms": found.last_timestamp_ms,
        "state_hash": found.state_hash,
        "metadata_version": found.metadata_version,
        "kraft_version": found.kraft_version,
        "voters": list(found.voters),
        "files": {
            str(path.relative_to(root)): digest(path)
            for path in sorted(root.rglob("*"))
            if path.is_file() and path.name != MANIFEST
        },
    }


def digest(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def make_durable(root: Path) -> None:
    """Have all files and folders in it on the disk: a backup before it gets its name, which says that it is whole."""
    import os

    from kquorum.storage.durable_files import sync_folder

    for path in root.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
        else:
            sync_folder(path)
    sync_folder(root)


COMMAND = Command(
    run=backup,
    summary="Copy a running cluster's metadata into a folder, verified.",
    panel=Panel.ASK,
    place=11,
    examples={
        "": ("kquorum backup /backups -c quorum.toml", "kquorum backup . --grpc localhost:9291 --json")
    },
)
