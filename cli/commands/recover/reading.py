"""Reads the folders that are left of a quorum."""

from dataclasses import replace
from pathlib import Path

from kquorum.cli.commands.log.files import FileCopy, MetadataLogFiles, the_log, within_its_end
from kquorum.cli.commands.log.states import Moment, state_at
from kquorum.cli.commands.recover.survey import BatchPlace, Survivor
from kquorum.cli.failures import CliError, ExitStatus
from kquorum.cli.output import complain
from kquorum.metadata.state_hash.image_hash import hash_of_image, state_hash_text
from kquorum.node.metadata_folder import has_lost_its_state
from kquorum.raft.adapters.errors import QuorumStateDamaged
from kquorum.raft.adapters.file_log import FOLDER_NAME
from kquorum.raft.adapters.quorum_state_file import QuorumStateFile
from kquorum.storage.meta_properties import read_meta_properties
from kquorum.wire.batch_walk import walk_batches
from kquorum.wire.log_scan import Damage
from kquorum.wire.uuids import uuid_to_text


def read_survivor(folder: Path) -> Survivor:
    """`folder` is a node's metadata.log.dir, or the __cluster_metadata-0 in it. Raises NotFormatted,
    MetaPropertiesDamaged or CliError; the result says why a log cannot be used."""
    if folder.name == FOLDER_NAME:
        folder = folder.parent
    if not folder.is_dir():
        raise CliError(f"{folder} is no folder: give the metadata.log.dir of a node", status=ExitStatus.USAGE)
    properties = read_meta_properties(folder)
    bare = Survivor(
        folder=folder,
        node_id=properties.node_id,
        cluster_id=properties.cluster_id,
        directory_id=None if properties.directory_id is None else uuid_to_text(properties.directory_id),
    )
    try:
        log = within_its_end(the_log(folder / FOLDER_NAME), _warn, keeps_newest=True)
        return _read_log(bare, log)
    except CliError as error:
        return _with_damage(bare, str(error))


def _with_damage(bare: Survivor, reason: str) -> Survivor:
    return replace(bare, damage=reason, state_epoch=_state_epoch(bare.folder / FOLDER_NAME))


def _read_log(bare: Survivor, log: MetadataLogFiles) -> Survivor:
    state = state_at(log, Moment(), _warn)
    if state.faults or state.unknown_count:
        return _with_damage(
            bare, "it holds records that this version cannot read or replay (`kquorum log verify`)"
        )
    return replace(
        bare,
        epoch=state.epoch,
        end_offset=state.offset,
        committed_offset=max((each.end_offset for each in log.snapshots), default=0),
        last_timestamp_ms=state.timestamp_ms,
        state_epoch=_state_epoch(bare.folder / FOLDER_NAME),
        state_hash=state_hash_text(hash_of_image(state.image)),
        kraft_version=state.quorum.kraft_version,
        metadata_version=state.image.metadata_version,
        voters=state.quorum.voter_texts,
        topics=len(state.image.topics.by_id),
        is_lost=has_lost_its_state(bare.folder),
        batches=tuple(_batches(log)),
    )


def _batches(log: MetadataLogFiles) -> list[BatchPlace]:
    found = list[BatchPlace]()
    for segment in log.segments:
        content = FileCopy(Path(segment.path))
        for batch in walk_batches(content.view):
            content.release_to(batch.position)
            if not isinstance(batch, Damage):
                header = batch.header
                found.append(
                    BatchPlace(
                        base_offset=header.base_offset,
                        next_offset=header.next_offset,
                        epoch=header.partition_leader_epoch,
                        crc=header.crc,
                    )
                )
    return found


def _state_epoch(metadata_log: Path) -> int:
    """0 where the election state cannot be read: the log's epochs are known all the same."""
    try:
        state = QuorumStateFile(metadata_log, lambda: (), lambda: 0).read()
    except QuorumStateDamaged as error:
        _warn(str(error))
        return 0
    return 0 if state is None else state.leader_epoch


def _warn(message: str) -> None:
    complain(message, style="yellow", label="warning")
