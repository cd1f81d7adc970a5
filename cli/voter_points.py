"""The points of a pre-flight that several changes of the voters share."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass

from cli.quorum_status import ReplicaLag
from cli.quorum_view import QuorumView
from node.config.addresses import HostPort
from wire.wording import counted

# A replica this far behind catches up within a moment: a batch of a busy leader or two.
LAG_LIMIT = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One point. `may_pass_later` says that waiting is the remedy, or part of it; `is_wished` that it failed because
    what was asked for is so already."""

    name: str
    passed: bool
    detail: str
    remedy: str = ""
    may_pass_later: bool = False
    is_wished: bool = False

    def as_json(self) -> dict[str, object]:
        """The remedy only where one is needed."""
        return asdict(self) | {"remedy": None if self.passed else self.remedy}


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """Who is to become a voter; `endpoint` is None where nobody told where it listens. `is_controller` is None where
    neither config nor registration says."""

    node_id: int
    directory_id: str | None
    endpoint: HostPort | None
    is_controller: bool | None


def dynamic(view: QuorumView) -> Check:
    return Check(
        name="dynamic quorum",
        passed=view.kraft_version >= 1,
        detail=f"kraft.version is {view.kraft_version}",
        remedy="the voters are those of the config (a static quorum): run `kquorum quorum upgrade` first",
    )


def leader_commits(view: QuorumView) -> Check:
    status = view.status
    return Check(
        name="leader commits",
        passed=status.high_watermark >= 0,
        detail=f"node {status.leader_id} leads epoch {status.leader_epoch}, high watermark {status.high_watermark}",
        remedy="the leader has not committed anything in its epoch: wait, or start more voters",
        may_pass_later=True,
    )


def is_a_controller(candidate: Candidate) -> Check:
    details = {
        True: f"node {candidate.node_id} is a controller",
        False: f"node {candidate.node_id} is a broker",
        None: f"nobody registered controller {candidate.node_id}",
    }
    return Check(
        name="a controller",
        passed=candidate.is_controller is True,
        detail=details[candidate.is_controller],
        remedy="only a controller can vote: start it with process.roles=controller"
        if candidate.is_controller is False
        else "start it, or name its listener with --endpoint",
        may_pass_later=candidate.is_controller is None,
    )


def observed(view: QuorumView, candidate: Candidate, observer: ReplicaLag | None) -> Check:
    node_id = candidate.node_id
    seen = ", ".join(str(replica.replica_id) for replica in view.status.observers) or "none"
    if observer is None:
        return Check(
            name="observed",
            passed=False,
            detail=f"node {node_id} does not fetch from the leader; the observers are: {seen}",
            remedy=f"start node {node_id}, formatted with --no-initial-controllers for this cluster",
            may_pass_later=True,
        )
    wanted = candidate.directory_id
    if wanted is not None and wanted != observer.directory_id:
        detail = f"node {node_id} fetches from directory {observer.directory_id}, not {wanted}"
        return Check(name="observed", passed=False, detail=detail, remedy="leave --directory-id out")
    has_id = observer.directory_id is not None
    return Check(
        name="observed",
        passed=has_id,
        detail=f"its directory id is {observer.directory_id}" if has_id else "it tells no directory id",
        remedy="it runs a version without directory ids: upgrade it",
    )


def caught_up(view: QuorumView, node_id: int, replica: ReplicaLag | None) -> list[Check]:
    if replica is None:
        return []
    fetched_ms = replica.last_fetch_timestamp_ms
    ago = "never" if fetched_ms is None else f"{max(view.now_ms - fetched_ms, 0) / 1000:.1f} s ago"
    lag = "unknown" if replica.lag is None else counted(replica.lag, "record")
    return [
        Check(
            name="alive",
            passed=view.is_alive(replica),
            detail=f"its last fetch was {ago}",
            remedy=f"start node {node_id}, or look into its log",
            may_pass_later=True,
        ),
        Check(
            name="caught up",
            passed=replica.lag is not None and replica.lag <= LAG_LIMIT,
            detail=f"its lag is {lag}",
            remedy=f"wait until it is below {LAG_LIMIT:,}: `kquorum quorum status` shows it",
            may_pass_later=True,
        ),
    ]


def has_endpoint(candidate: Candidate) -> Check:
    found = candidate.endpoint
    return Check(
        name="endpoint",
        passed=found is not None,
        detail="it is not known where its listener is" if found is None else f"its listener is {found}",
        remedy="name it with --endpoint host:port, or with --config FILE where the node is in",
        may_pass_later=True,
    )


def majority(voters: Iterable[int], alive: Iterable[int]) -> Check:
    """Of the voters as they would be: the change itself needs a majority of them to be committed."""
    count, running = len(set(voters)), sorted(set(alive))
    spare = len(running) - (count // 2 + 1)
    said = ", ".join(str(node_id) for node_id in running) or "none"
    return Check(
        name="majority",
        passed=spare >= 0,
        detail=f"afterwards {size_in_words(count)}; alive now: {said}",
        remedy="too few would be alive to commit the change, or anything after it: start voters first",
        may_pass_later=True,
    )


def size_in_words(voters: int) -> str:
    """`3 voters, majority 2: 1 may fail`."""
    needed = voters // 2 + 1
    may_fail = voters - needed
    return f"{counted(voters, 'voter')}, majority {needed}: {may_fail or 'none'} may fail"
