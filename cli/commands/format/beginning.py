"""How a quorum begins: with the voters of the config, with voters written into its folders, or with none yet (KIP-853).

The names of the options (`--standalone`, `--initial-controllers`, `--no-initial-controllers`) and the rules between
them are those of Kafka's storage tool.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from kquorum.cli.commands.features.metadata_versions import name_of
from kquorum.cli.failures import usage_error
from kquorum.metadata.image.metadata_version import DYNAMIC_QUORUM, KRAFT_VERSION
from kquorum.node.config.addresses import WILDCARD_HOSTS, parse_host_port, reachable
from kquorum.node.config.model import NodeConfig
from kquorum.node.endpoints import controller_endpoints
from kquorum.raft.voters import SUPPORTED_KRAFT_VERSIONS, Endpoint, ReplicaKey, Voter, VoterSet
from kquorum.wire.uuids import ZERO_UUID, uuid_from_text, uuid_to_text

_VOTER = re.compile(r"(?P<id>\d+)@(?P<address>.+):(?P<directory>[A-Za-z0-9_-]{22})")


def parse_initial_controllers(text: str, listener_name: str) -> VoterSet:
    """`id@host:port:directoryId`, comma-separated (an IPv6 host in brackets). Raises CliError."""
    voters = [_parse_voter(part.strip(), listener_name) for part in text.split(",") if part.strip()]
    if not voters:
        raise usage_error("--initial-controllers names no controller")
    _check_distinct(voters)
    return VoterSet.of(*voters)


def _parse_voter(text: str, listener_name: str) -> Voter:
    match = _VOTER.fullmatch(text)
    if match is None:
        raise usage_error(
            f"--initial-controllers: {text!r} is not id@host:port:directoryId, such as "
            "1@controller-1:9093:JEXY6aqzQY-32P5TStzaFg (`kquorum random-uuid` makes directory ids)"
        )
    try:
        host, port = parse_host_port(match["address"])
        directory_id = uuid_from_text(match["directory"])
    except ValueError as error:
        raise usage_error(f"--initial-controllers: {text!r}: {error}") from error
    # The voters' addresses go into the log, where a wrong one cannot be corrected before the quorum runs.
    if host in WILDCARD_HOSTS:
        raise usage_error(f"--initial-controllers: {text!r} names no host that others can connect to")
    if directory_id == ZERO_UUID:
        raise usage_error(f"--initial-controllers: {text!r} has the directory id that means none")
    key = ReplicaKey(int(match["id"]), directory_id)
    return Voter(key, (Endpoint(listener_name, host, port),), SUPPORTED_KRAFT_VERSIONS)


def _check_distinct(voters: Iterable[Voter]) -> None:
    owners: dict[UUID, int] = {}
    ids: set[int] = set()
    for voter in voters:
        node_id, directory_id = voter.key.id, voter.key.directory_id
        if node_id in ids:
            raise usage_error(f"--initial-controllers names node id {node_id} twice")
        ids.add(node_id)
        owner = owners.setdefault(directory_id, node_id)
        if owner != node_id:
            raise usage_error(
                f"--initial-controllers gives directory id {uuid_to_text(directory_id)} to node {owner} and to node "
                f"{node_id}: each folder has its own (`kquorum random-uuid` makes one)"
            )


def check_against_config(
    voters: VoterSet, formatted: Sequence[NodeConfig], known: Sequence[NodeConfig]
) -> list[str]:
    """What is odd about the voters that were listed, as warnings: they go into every folder, so that a wrong address is
    there for good. Raises CliError where the config, which has the nodes at hand, says that they are wrong."""
    listed = ", ".join(str(node_id) for node_id in voters.ids)
    for node in formatted:
        if node.is_controller and node.node_id not in voters.voters:
            raise usage_error(
                f"--initial-controllers lists {listed}, but not node {node.node_id}, a controller that is to be "
                "formatted: add it to the list, or format it with --no-initial-controllers, to be added later"
            )
    warnings = []
    for node in known:
        voter = voters.voters.get(node.node_id)
        if voter is None:
            continue
        if not node.is_controller:
            raise usage_error(
                f"--initial-controllers lists node {node.node_id}, which is a broker in the config"
            )
        own, given = controller_endpoints(node)[0], voter.endpoints[0]
        # A port of 0 lets the system choose, so there is nothing to compare.
        if own.port not in (0, given.port):
            raise usage_error(
                f"--initial-controllers says that node {node.node_id} listens on {given.host}:{given.port}, but in the "
                f"config it is {own.host}:{own.port}: the others would not find it"
            )
        if reachable(own.host, own.port) != reachable(given.host, given.port):
            warnings.append(
                f"--initial-controllers names node {node.node_id} {given.host}, the config {own.host}: both must be "
                "names of the same machine"
            )
    return warnings


STATIC, DYNAMIC = 0, 1
_WAYS = "--standalone, --initial-controllers or --no-initial-controllers"


@dataclass(frozen=True, slots=True)
class Beginning:
    """`voters` is written into the metadata folder of every node formatted with it; None writes no voters at all:
    those of the config count (kraft.version 0), or the node will learn them from a leader. With `replaces_disk` the
    node was a static voter before, with a log and votes that are gone."""

    kraft_version: int = STATIC
    voters: VoterSet | None = None
    replaces_disk: bool = False

    def directory_id_of(self, node_id: int) -> UUID | None:
        """The directory id that the voters give to a node; None when they leave it open."""
        voter = None if self.voters is None else self.voters.voters.get(node_id)
        return None if voter is None else voter.key.directory_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """The options of `kquorum format` that say how the quorum begins."""

    standalone: bool = False
    initial_controllers: str | None = None
    no_initial_controllers: bool = False
    kraft_version: int | None = None
    replaced_disk: bool = False

    @property
    def named(self) -> tuple[str, ...]:
        given = (
            (self.standalone, "--standalone"),
            (self.initial_controllers is not None, "--initial-controllers"),
            (self.no_initial_controllers, "--no-initial-controllers"),
        )
        return tuple(name for is_given, name in given if is_given)


def choose_beginning(nodes: Sequence[NodeConfig], wishes: Wishes, new_directory_id: UUID) -> Beginning:
    """Raises CliError, naming the remedy, for options that contradict each other or the config."""
    if len(wishes.named) > 1:
        raise usage_error(f"{' and '.join(wishes.named)} exclude each other: a quorum begins in one way")
    static = [node for node in nodes if node.is_controller and node.controller_quorum_voters]
    if wishes.named and static:
        raise usage_error(
            f"{wishes.named[0]} is for a dynamic quorum, but the config of node {static[0].node_id} has "
            "controller.quorum.voters (set there, or derived from the controllers of the file), which makes a static "
            f"one: leave {wishes.named[0]} out, or set controller.quorum.bootstrap.servers in place of the voters"
        )
    if wishes.replaced_disk and not static:
        raise usage_error(
            "--replaced-disk is for a controller of a static quorum; in a dynamic one a new disk is a new voter: "
            "format it with --no-initial-controllers, then 'kquorum quorum remove-voter' and 'add-voter'"
        )
    open_ones = [node for node in nodes if node.is_controller and not node.controller_quorum_voters]
    if open_ones and not wishes.named:
        raise usage_error(
            f"controller.quorum.voters is not set on controller {open_ones[0].node_id}, so you must say how its quorum "
            f"begins, with one of {_WAYS}: alone, with the controllers you list, or as a node to be added to a quorum"
        )
    voters = _voters(nodes, wishes, new_directory_id)
    return Beginning(_kraft_version(wishes, voters is not None), voters, wishes.replaced_disk)


def _voters(nodes: Sequence[NodeConfig], wishes: Wishes, new_directory_id: UUID) -> VoterSet | None:
    if wishes.standalone:
        return _sole_voter(nodes, new_directory_id)
    if wishes.initial_controllers is None:
        return None
    names = [node.controller_listener_names[0] for node in nodes]
    return parse_initial_controllers(wishes.initial_controllers, names[0])


def _sole_voter(nodes: Sequence[NodeConfig], directory_id: UUID) -> VoterSet:
    controllers = [node for node in nodes if node.is_controller]
    if not controllers:
        raise usage_error(f"--standalone is for a controller; node {nodes[0].node_id} is only a broker")
    if len(controllers) > 1:
        ids = ", ".join(str(node.node_id) for node in controllers)
        raise usage_error(
            f"--standalone makes one controller a quorum of its own, but {ids} are to be formatted: name one of them "
            "with --node, and format the others with --no-initial-controllers"
        )
    node = controllers[0]
    return VoterSet.of(
        Voter(
            ReplicaKey(node.node_id, directory_id), controller_endpoints(node)[:1], SUPPORTED_KRAFT_VERSIONS
        )
    )


def begin_with_all(controllers: Sequence[NodeConfig], new_directory_id: Callable[[], UUID]) -> Beginning:
    """A dynamic quorum of all these controllers, each with a new directory id."""
    voters = (
        Voter(
            ReplicaKey(node.node_id, new_directory_id()),
            controller_endpoints(node)[:1],
            SUPPORTED_KRAFT_VERSIONS,
        )
        for node in controllers
    )
    return Beginning(DYNAMIC, VoterSet.of(*voters))


def _kraft_version(wishes: Wishes, has_voters: bool) -> int:
    asked = wishes.kraft_version
    if asked is None:
        return DYNAMIC if has_voters else STATIC
    if asked not in (STATIC, DYNAMIC):
        raise usage_error(f"--feature {KRAFT_VERSION}={asked}: there are {KRAFT_VERSION} 0 and 1")
    if asked == STATIC and has_voters:
        raise usage_error(
            f"--feature {KRAFT_VERSION}=0 means a static quorum, but {wishes.named[0]} begins a dynamic one: "
            "leave one of them out"
        )
    if asked == DYNAMIC and not has_voters:
        raise usage_error(
            f"--feature {KRAFT_VERSION}=1 needs voters to begin with: --standalone or --initial-controllers; a static "
            "quorum is upgraded while it runs, with `kquorum quorum upgrade`"
        )
    return asked


def check_metadata_version(beginning: Beginning, metadata_version: int) -> None:
    """Raises CliError for a dynamic quorum below the metadata.version that knows of them."""
    if beginning.kraft_version and metadata_version < DYNAMIC_QUORUM:
        raise usage_error(
            f"{KRAFT_VERSION} 1 (a dynamic quorum) needs metadata.version {DYNAMIC_QUORUM} (3.9-IV0) or "
            f"later; {metadata_version} ({name_of(metadata_version)}) was asked for with --release-version"
        )
