"""What `kquorum format` checks against the config, and what it tells of the folders afterwards."""

from collections.abc import Sequence
from dataclasses import dataclass

from cli.formatting import FormattedFolder
from cli.initial_controllers import check_against_config
from cli.metadata_versions import name_of
from cli.output import complain, print_json, print_table
from cli.quorum_beginning import Beginning
from node.config.model import NodeConfig
from node.metadata_folder import first_voters
from wire.uuids import uuid_from_text, uuid_to_text


@dataclass(frozen=True, slots=True)
class Formatted:
    """What was asked for and what came of it."""

    outcomes: Sequence[FormattedFolder]
    cluster_id: str
    metadata_version: int
    beginning: Beginning
    nodes: Sequence[NodeConfig]

    @property
    def voters_written(self) -> tuple[int, ...] | None:
        """The first voters, where they were written into a folder now."""
        voters = self.beginning.voters
        is_written = any(outcome.is_new and outcome.is_metadata for outcome in self.outcomes)
        return voters.ids if voters is not None and is_written else None

    def differing(self) -> list[str]:
        """Controllers whose folder was left as it was and has other first voters than those asked for now."""
        asked = self.beginning.voters
        if asked is None:
            return []
        controllers = {node.node_id for node in self.nodes if node.is_controller}
        told = []
        for outcome in self.outcomes:
            if outcome.is_new or not outcome.is_metadata or outcome.node_id not in controllers:
                continue
            found = first_voters(outcome.folder)
            if found is None or found.keys != asked.keys:
                has = "no first voters" if found is None else f"the first voters {_named(found.ids)}"
                told.append(
                    f"node {outcome.node_id} was left as it was and has {has}: those asked for now "
                    f"({_named(asked.ids)}) were not written"
                )
        return told


def check_voters(beginning: Beginning, nodes: Sequence[NodeConfig], known: Sequence[NodeConfig]) -> None:
    """Raises CliError where the listed voters contradict the config; warns where they may."""
    assert beginning.voters is not None
    for warning in check_against_config(beginning.voters, nodes, known):
        complain(warning, style="yellow", label="warning")


def warn_of_cluster_id(cluster_id: str) -> None:
    """Kafka takes any text, but its tools make such ids only, and a made-up one may be another cluster's."""
    try:
        uuid_from_text(cluster_id)
    except ValueError:
        complain(
            f"cluster.id {cluster_id} is not 16 bytes in url-safe base64, as `kquorum random-uuid` and Kafka's tools "
            "make one: make sure that no other cluster has it",
            style="yellow",
            label="warning",
        )


def show_formatted(formatted: Formatted, *, as_json: bool) -> None:
    for line in formatted.differing():
        complain(line, style="yellow", label="warning")
    ids = [None if it.directory_id is None else uuid_to_text(it.directory_id) for it in formatted.outcomes]
    written = formatted.voters_written
    if as_json:
        folders = [
            {
                "node_id": item.node_id,
                "folder": str(item.folder),
                "formatted": item.is_new,
                "directory_id": directory_id,
            }
            for item, directory_id in zip(formatted.outcomes, ids, strict=True)
        ]
        levels = {
            "metadata_version": formatted.metadata_version,
            "kraft_version": formatted.beginning.kraft_version,
        }
        voters = None if written is None else list(written)
        print_json({"cluster_id": formatted.cluster_id, **levels, "voters": voters, "folders": folders})
        return
    rows = [
        (item.node_id, directory_id, "formatted" if item.is_new else "left as it was", str(item.folder))
        for item, directory_id in zip(formatted.outcomes, ids, strict=True)
    ]
    print_table(_title(formatted), ("#node", "directory id", "outcome", "folder"), rows)


def _title(formatted: Formatted) -> str:
    """Only what was written."""
    if not any(outcome.is_new for outcome in formatted.outcomes):
        return f"cluster {formatted.cluster_id}: nothing was written"
    level = formatted.metadata_version
    written = formatted.voters_written
    voters = "" if written is None else f", first voters {_named(written)}"
    return f"cluster {formatted.cluster_id}, metadata.version {level} ({name_of(level)}){voters}"


def _named(ids: Sequence[int]) -> str:
    return ", ".join(map(str, ids))
