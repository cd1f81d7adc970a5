"""`--initial-controllers` of `kquorum format`: the first voters as typed, and as the config at hand knows them."""

import re
from collections.abc import Iterable, Sequence
from uuid import UUID

from cli.errors import CliError
from cli.exit_status import ExitStatus
from node.config.addresses import WILDCARD_HOSTS, parse_host_port, reachable
from node.config.model import NodeConfig
from node.endpoints import controller_endpoints
from raft.voters import SUPPORTED_KRAFT_VERSIONS, Endpoint, ReplicaKey, Voter, VoterSet
from wire.uuids import ZERO_UUID, uuid_from_text, uuid_to_text

_VOTER = re.compile(r"(?P<id>\d+)@(?P<address>.+):(?P<directory>[A-Za-z0-9_-]{22})")


def parse_initial_controllers(text: str, listener_name: str) -> VoterSet:
    """`id@host:port:directoryId`, comma-separated (an IPv6 host in brackets). Raises CliError."""
    voters = [_parse_voter(part.strip(), listener_name) for part in text.split(",") if part.strip()]
    if not voters:
        raise _refused("--initial-controllers names no controller")
    _check_distinct(voters)
    return VoterSet.of(*voters)


def _parse_voter(text: str, listener_name: str) -> Voter:
    match = _VOTER.fullmatch(text)
    if match is None:
        raise _refused(
            f"--initial-controllers: {text!r} is not id@host:port:directoryId, such as "
            "1@controller-1:9093:JEXY6aqzQY-32P5TStzaFg (`kquorum random-uuid` makes directory ids)"
        )
    try:
        host, port = parse_host_port(match["address"])
        directory_id = uuid_from_text(match["directory"])
    except ValueError as error:
        raise _refused(f"--initial-controllers: {text!r}: {error}") from error
    if host in WILDCARD_HOSTS:
        raise _refused(f"--initial-controllers: {text!r} names no host that others can connect to")
    if directory_id == ZERO_UUID:
        raise _refused(f"--initial-controllers: {text!r} has the directory id that means none")
    key = ReplicaKey(int(match["id"]), directory_id)
    return Voter(key, (Endpoint(listener_name, host, port),), SUPPORTED_KRAFT_VERSIONS)


def _check_distinct(voters: Iterable[Voter]) -> None:
    owners: dict[UUID, int] = {}
    ids: set[int] = set()
    for voter in voters:
        node_id, directory_id = voter.key.id, voter.key.directory_id
        if node_id in ids:
            raise _refused(f"--initial-controllers names node id {node_id} twice")
        ids.add(node_id)
        owner = owners.setdefault(directory_id, node_id)
        if owner != node_id:
            raise _refused(
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
            raise _refused(
                f"--initial-controllers lists {listed}, but not node {node.node_id}, a controller that is to be "
                "formatted: add it to the list, or format it with --no-initial-controllers, to be added later"
            )
    warnings = []
    for node in known:
        voter = voters.voters.get(node.node_id)
        if voter is None:
            continue
        if not node.is_controller:
            raise _refused(
                f"--initial-controllers lists node {node.node_id}, which is a broker in the config"
            )
        own, given = controller_endpoints(node)[0], voter.endpoints[0]
        if own.port not in (0, given.port):
            raise _refused(
                f"--initial-controllers says that node {node.node_id} listens on {given.host}:{given.port}, but in the "
                f"config it is {own.host}:{own.port}: the others would not find it"
            )
        if reachable(own.host, own.port) != reachable(given.host, given.port):
            warnings.append(
                f"--initial-controllers names node {node.node_id} {given.host}, the config {own.host}: both must be "
                "names of the same machine"
            )
    return warnings


def _refused(message: str) -> CliError:
    return CliError(message, status=ExitStatus.USAGE)
