"""The machines of a world, and the arguments of their processes."""

from random import Random
from typing import TYPE_CHECKING
from uuid import UUID

from kquorum.node.replica_settings import COMMIT_NOTICE_DELAY_MS
from kquorum.raft.config import QuorumConfig
from kquorum.raft.voters import Endpoint
from tests.simulation.disk import SimulatedDisk
from tests.simulation.hosts import CheapDice, Host

if TYPE_CHECKING:
    from tests.simulation.world import World

CLUSTER_ID = "simulated-cluster-id00"
FIRST_OBSERVER = 101


def build_host(world: "World", node_id: int) -> Host:
    """Disks are of different speeds: that a leader's is the slowest is what makes its own flush count."""
    random_source = Random(world.random_source.getrandbits(64))
    drift = 10 * world.options.clock_drift_percent
    state_ms_max = Random(world.seed ^ node_id << 32).choice((0, 1, 2)) * world.options.state_ms_max
    return Host(
        node_id=node_id,
        directory_id=UUID(int=node_id),
        disk=SimulatedDisk(random_source, world.options.segment_batches),
        random_source=CheapDice(random_source.getrandbits(64)),
        can_be_voter=node_id < FIRST_OBSERVER,
        is_old=world.options.mixes_releases and random_source.random() < 0.4,
        flush_ms_max=random_source.choice((0, 1, 4)) * world.options.flush_ms_max,
        state_ms=(0, state_ms_max),
        clock_permille=1000 + random_source.randint(-drift, drift),
        clock_start_ms=random_source.randint(0, 1000) if drift else 0,
    )


def config_of(world: "World", host: Host) -> QuorumConfig:
    options = world.options
    return QuorumConfig(
        node_id=host.node_id,
        directory_id=host.directory_id,
        cluster_id=CLUSTER_ID,
        can_be_voter=host.can_be_voter,
        endpoints=(host.endpoint,),
        bootstrap_servers=_bootstrap_servers(world, host),
        auto_join=options.auto_join and host.can_be_voter,
        has_lost_its_state=host.disk.has_lost_its_state,
        damaged_until=host.disk.damaged_until,
        election_timeout_ms=options.election_timeout_ms,
        fetch_timeout_ms=options.fetch_timeout_ms,
        request_timeout_ms=options.fetch_timeout_ms,
        fetch_max_wait_ms=options.fetch_timeout_ms // 4,
        election_backoff_max_ms=options.election_timeout_ms,
        max_fetch_bytes=options.max_fetch_bytes,
        # As nodes have it, in every second world.
        commit_notice_delay_ms=COMMIT_NOTICE_DELAY_MS if world.seed % 2 else 0,
    )


def _bootstrap_servers(world: "World", host: Host) -> tuple[Endpoint, ...]:
    """`controller.quorum.bootstrap.servers`, as the operator would write it now."""
    if world.options.quorum == "static":
        return ()
    return tuple(other.endpoint for other in world.hosts.values() if other.can_be_voter and other is not host)
