"""The configuration of one replica of the quorum."""

from dataclasses import dataclass
from uuid import UUID

from kquorum.raft.voters import SUPPORTED_KRAFT_VERSIONS, Endpoint, VersionRange


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumConfig:
    """Identity and timing of one replica; every time is in milliseconds.

    The defaults are Kafka's (`controller.quorum.*`). There is no `append_linger_ms`: batching happens by sharing
    a turn of the event loop, so waiting for company would only add latency.

    `endpoints` is where this replica's controller listeners are reached, the first one being the quorum's;
    `bootstrap_servers` are asked for the leader while no voter is known. `has_lost_its_state` says that the
    folder lacks the election state that it must have: such a replica neither votes nor stands, nor writes any,
    before it has caught up. `damaged_until` says that the log was opened without records that it must have, up to
    that offset: see `raft.recovery`.

    `commit_notice_delay_ms` is how long a voter's Fetch waits at the leader for records when the leader could say only
    that the high watermark has moved. Without it each commit costs a voter an answer and a Fetch more, and the next
    record waits for that Fetch.
    """

    node_id: int
    directory_id: UUID
    cluster_id: str
    can_be_voter: bool
    endpoints: tuple[Endpoint, ...] = ()
    kraft_versions: VersionRange = SUPPORTED_KRAFT_VERSIONS
    bootstrap_servers: tuple[Endpoint, ...] = ()
    auto_join: bool = False
    has_lost_its_state: bool = False
    damaged_until: int | None = None
    election_timeout_ms: int = 1000
    fetch_timeout_ms: int = 2000
    election_backoff_max_ms: int = 1000
    request_timeout_ms: int = 2000
    retry_backoff_ms: int = 20
    fetch_max_wait_ms: int = 500
    commit_notice_delay_ms: int = 0
    max_batch_bytes: int = 8 * 1024 * 1024
    max_fetch_bytes: int = 8 * 1024 * 1024

    @property
    def check_quorum_timeout_ms(self) -> int:
        """How long a leader may go without fetches from a majority (KIP-595: 1.5 times the fetch timeout)."""
        return self.fetch_timeout_ms * 3 // 2

    @property
    def begin_quorum_epoch_interval_ms(self) -> int:
        return max(1, self.fetch_timeout_ms // 2)

    @property
    def update_voter_period_ms(self) -> int:
        """How often a replica looks whether the voter set says of it what is true."""
        return self.fetch_timeout_ms

    @property
    def paused_fetch_interval_ms(self) -> int:
        """How often a replica without space asks for what it cannot take: often enough to be known to follow, and
        before the leader asks for it (`begin_quorum_epoch_interval_ms`)."""
        return max(1, self.fetch_timeout_ms // 8)

    @property
    def pre_vote_retry_ms(self) -> int:
        """When a voter that refused a pre-vote is asked again; see `elections.handle_vote_response`."""
        return max(self.retry_backoff_ms, self.election_timeout_ms // 10)

    def problems(self) -> list[str]:
        """Every broken rule, as sentences; empty when the config is sound."""
        found = []
        if self.node_id < 0:
            found.append(f"node.id is {self.node_id}; it must be 0 or greater")
        if self.directory_id.int == 0:
            found.append("the directory id is zero; format the data folder first")
        times = ("election_timeout_ms", "fetch_timeout_ms", "request_timeout_ms", "fetch_max_wait_ms")
        found.extend(
            f"{name} is {getattr(self, name)}; it must be at least 1 ms"
            for name in times
            if getattr(self, name) < 1
        )
        return found
