"""Commands that make the cluster and say what its disks hold before a process starts."""

from dataclasses import replace

from kquorum.raft.config import QuorumConfig
from kquorum.raft.ready import QuorumState
from kquorum.raft.voters import KRaftVersionAt, VersionRange, Voter, VotersAt, VoterSet
from kquorum.wire.log_batch import OffsetAndEpoch
from tests.scenarios.arguments import Arguments, read_key, read_log, read_numbers, read_place
from tests.scenarios.cluster import Cluster
from tests.scenarios.errors import ScenarioError
from tests.scenarios.host import CLUSTER_ID, Host, directory, endpoint_of


def cluster(made: Cluster, arguments: Arguments) -> None:
    """`cluster voters=1,2,3 observers=4`: formatted, not started; `dynamic=yes` puts the voters into a bootstrap
    checkpoint (kraft.version 1) in place of the configuration. `controllers=4` are observers that may vote one day,
    `auto-join=yes` makes them want to. `listeners=yes` lets static voters say where they listen;
    `request-timeout=300` is in ms."""
    if made.hosts:
        raise ScenarioError("there is a cluster already")
    voters = read_numbers(arguments.option("voters", "1"))
    controllers = read_numbers(arguments.option("controllers", "-"))
    observers = read_numbers(arguments.option("observers", "-"))
    auto_join = arguments.option("auto-join", "no") == "yes"
    is_dynamic = arguments.option("dynamic", "no") == "yes"
    has_listeners = is_dynamic or arguments.option("listeners", "no") == "yes"
    request_timeout_ms = int(arguments.option("request-timeout", "2000"))
    for node_id in sorted([*voters, *controllers, *observers]):
        config = QuorumConfig(
            node_id=node_id,
            directory_id=directory(node_id),
            cluster_id=CLUSTER_ID,
            can_be_voter=node_id not in observers,
            endpoints=(endpoint_of(f"host{node_id}"),) if has_listeners else (),
            bootstrap_servers=tuple(endpoint_of(f"host{voter}") for voter in voters) if is_dynamic else (),
            auto_join=auto_join and node_id in controllers,
            request_timeout_ms=request_timeout_ms,
        )
        made.hosts[node_id] = Host(node_id, config)
    if is_dynamic:
        _write_bootstrap(made, voters)
    else:
        made.static_voters = VoterSet.of(*(_static_voter(node_id) for node_id in voters))


def _static_voter(node_id: int) -> Voter:
    """A voter of the configuration: its directory is not known there."""
    return Voter(read_key(f"{node_id}/0"))


def _write_bootstrap(made: Cluster, voters: list[int]) -> None:
    """Only the first voters are formatted with the voter set; who comes later learns it from the log."""
    keyed = VoterSet.of(
        *(Voter(read_key(str(node)), (endpoint_of(f"host{node}"),), VersionRange(0, 1)) for node in voters)
    )
    for node_id in voters:
        made.host(node_id).disk.bootstrap = (KRaftVersionAt(-1, 1), VotersAt(-1, keyed))


def given(made: Cluster, arguments: Arguments) -> None:
    """`given 2 log=1x3,3x2 epoch=5 leader=1 voted=3`: what node 2's disk holds, all of it durable. Also
    `snapshots=3@1`, `start=3` (where the log begins), `directory=7` (another disk), `endpoint=host2b`,
    `lost-state=yes`, `wiped=yes`; `damaged=7`: from offset 7 on, what was in the log is lost."""
    host = made.host(arguments.number("the node"))
    if host.node is not None:
        raise ScenarioError(f"node {host.node_id} runs: a disk is changed while it does not")
    host.config = _changed_config(host.config, arguments)
    if arguments.option("wiped", "no") == "yes":
        host.disk = type(host.disk)()
    _fill_log(host, arguments)
    _damage(host, arguments)
    epoch = arguments.maybe("epoch")
    if epoch is not None:
        voted = arguments.option("voted", "-")
        host.disk.state = QuorumState(
            leader_epoch=int(epoch),
            leader_id=int(arguments.option("leader", "-1")),
            voted=None if voted == "-" else read_key(voted),
        )


def _fill_log(host: Host, arguments: Arguments) -> None:
    snapshots = arguments.maybe("snapshots")
    if snapshots is not None:
        host.disk.snapshots = tuple(_places(snapshots))
    host.disk.start_offset = int(arguments.option("start", str(host.disk.start_offset)))
    log = arguments.maybe("log")
    if log is not None:
        host.disk.batches = read_log(log, host.disk.start_offset)
        host.disk.flushed_batches = len(host.disk.batches)


def _damage(host: Host, arguments: Arguments) -> None:
    sound_until = arguments.maybe("damaged")
    if sound_until is not None:
        host.config = replace(host.config, damaged_until=host.disk.end_offset)
        host.disk.truncate_to(int(sound_until))


def _places(text: str) -> list[OffsetAndEpoch]:
    return [read_place(part) for part in text.split(",")]


def _changed_config(config: QuorumConfig, arguments: Arguments) -> QuorumConfig:
    directory_number, host = arguments.maybe("directory"), arguments.maybe("endpoint")
    versions = arguments.maybe("versions")
    if directory_number is not None:
        config = replace(config, directory_id=directory(int(directory_number)))
    if host is not None:
        config = replace(config, endpoints=(endpoint_of(host),))
    if versions is not None:
        lowest, _, highest = versions.partition("-")
        config = replace(config, kraft_versions=VersionRange(int(lowest), int(highest)))
    if arguments.option("lost-state", "no") == "yes":
        config = replace(config, has_lost_its_state=True)
    if arguments.option("auto-join", "no") == "yes":
        config = replace(config, auto_join=True)
    return config
