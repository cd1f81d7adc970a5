"""The pre-flight of a change of the voters: everything that speaks against it, each point with its remedy.

The leader checks again and has the last word; what is looked at here is what an operator can act on, also where the
leader would say yes and the quorum would stand still afterwards.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cli.config.addresses import HostPort
from cli.quorum_status import ReplicaLag
from cli.quorum_view import METADATA_VERSION, QuorumView

# A replica this far behind catches up within a moment: a batch of a busy leader or two.
LAG_LIMIT = 1000
DYNAMIC_METADATA_VERSION = 21


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One point. `may_pass_later` says that waiting is the remedy, or part of it."""

    name: str
    passed: bool
    detail: str
    remedy: str = ""
    may_pass_later: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """Who is to become a voter; `endpoint` is None where nobody told where it listens. `is_controller` is None where
    neither config nor registration says."""

    node_id: int
    directory_id: str | None
    endpoint: HostPort | None
    is_controller: bool | None


def add_voter_checks(view: QuorumView, candidate: Candidate) -> list[Check]:
    node_id, status = candidate.node_id, view.status
    voter = status.voter(node_id)
    observer = view.observer(node_id)
    ids = [replica.replica_id for replica in status.voters]
    checks = [_dynamic(view), _leader_commits(view)]
    checks.append(
        Check(
            name="not a voter yet",
            passed=voter is None,
            detail=f"node {node_id} is {'no' if voter is None else 'a'} voter",
            remedy=f"if its disk was replaced, `kquorum quorum remove-voter {node_id}` takes the old one out first",
        )
    )
    checks.append(_is_controller(candidate))
    if voter is None:
        checks += [_observed(view, candidate, observer), *_caught_up(view, node_id, observer)]
    checks.append(_endpoint(candidate))
    alive = [replica.replica_id for replica in status.voters if view.is_alive(replica)]
    is_alive = observer is not None and view.is_alive(observer)
    checks.append(_majority([*ids, node_id], [*alive, node_id] if is_alive else alive))
    return checks


def remove_voter_checks(view: QuorumView, node_id: int) -> list[Check]:
    status = view.status
    voters = {replica.replica_id: replica for replica in status.voters}
    rest = [replica for replica in status.voters if replica.replica_id != node_id]
    named = ", ".join(str(voter_id) for voter_id in voters)
    checks = [
        _dynamic(view),
        _leader_commits(view),
        Check(
            name="a voter",
            passed=node_id in voters,
            detail=f"the voters are {named}",
            remedy="name one of them",
        ),
        Check(
            name="not the last",
            passed=node_id not in voters or len(voters) > 1,
            detail=f"{len(rest)} voters would remain" if rest else f"node {node_id} is the only voter",
            remedy="add another voter first",
        ),
    ]
    if rest:
        alive = [replica.replica_id for replica in rest if view.is_alive(replica)]
        checks.append(_majority([replica.replica_id for replica in rest], alive))
    if node_id == status.leader_id and rest:
        checks.append(_leader_may_go(node_id, [replica.replica_id for replica in rest]))
    return checks


def _leader_may_go(leader_id: int, rest: Sequence[int]) -> Check:
    if len(rest) == 1:
        return Check(
            name="leader",
            passed=False,
            detail=f"node {leader_id} leads one other voter only; were it to crash just then, neither could be elected",
            remedy=f"`kquorum quorum transfer-leadership {rest[0]}` first",
        )
    detail = (
        f"node {leader_id} leads; it leads on until its removal is committed, then another voter is elected"
    )
    return Check(name="leader", passed=True, detail=detail)


def transfer_checks(view: QuorumView, node_id: int) -> list[Check]:
    voter = view.status.voter(node_id)
    named = ", ".join(str(replica.replica_id) for replica in view.status.voters)
    checks = [
        Check(
            name="a voter",
            passed=voter is not None,
            detail=f"the voters are {named}",
            remedy="only a voter can lead: name one of them",
        ),
        Check(
            name="not the leader",
            passed=node_id != view.status.leader_id,
            detail=f"node {view.status.leader_id} leads epoch {view.status.leader_epoch}",
            remedy="there is nothing to do",
        ),
    ]
    if voter is not None and node_id != view.status.leader_id:
        checks += _caught_up(view, node_id, voter)
    return checks


def upgrade_checks(view: QuorumView) -> list[Check]:
    level = view.levels.get(METADATA_VERSION, 0)
    silent = [str(voter.replica_id) for voter in view.status.voters if not view.is_alive(voter)]
    return [
        Check(
            name="static",
            passed=view.kraft_version == 0,
            detail=f"kraft.version is {view.kraft_version}",
            remedy="there is nothing to do: the voters can be changed already",
        ),
        Check(
            name="metadata.version",
            passed=level >= DYNAMIC_METADATA_VERSION,
            detail=f"metadata.version is {level}; a dynamic quorum needs {DYNAMIC_METADATA_VERSION} (3.9-IV0) or later",
            remedy="format the cluster with a later one",
        ),
        Check(
            name="all voters run",
            passed=not silent,
            detail=f"silent: {', '.join(silent)}"
            if silent
            else f"all {len(view.status.voters)} voters fetch",
            remedy="start them: each voter tells the leader its directory id and its listeners",
            may_pass_later=True,
        ),
        _leader_commits(view),
    ]


def _dynamic(view: QuorumView) -> Check:
    return Check(
        name="dynamic quorum",
        passed=view.kraft_version >= 1,
        detail=f"kraft.version is {view.kraft_version}",
        remedy="the voters are those of the config (a static quorum): run `kquorum quorum upgrade` first",
    )


def _leader_commits(view: QuorumView) -> Check:
    status = view.status
    return Check(
        name="leader commits",
        passed=status.high_watermark >= 0,
        detail=f"node {status.leader_id} leads epoch {status.leader_epoch}, high watermark {status.high_watermark}",
        remedy="the leader has not committed anything in its epoch: wait, or start more voters",
        may_pass_later=True,
    )


def _is_controller(candidate: Candidate) -> Check:
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


def _observed(view: QuorumView, candidate: Candidate, observer: ReplicaLag | None) -> Check:
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


def _caught_up(view: QuorumView, node_id: int, replica: ReplicaLag | None) -> list[Check]:
    if replica is None:
        return []
    fetched_ms = replica.last_fetch_timestamp_ms
    ago = "never" if fetched_ms is None else f"{max(view.now_ms - fetched_ms, 0) / 1000:.1f} s ago"
    lag = "unknown" if replica.lag is None else f"{replica.lag:,} records"
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


def _endpoint(candidate: Candidate) -> Check:
    found = candidate.endpoint
    return Check(
        name="endpoint",
        passed=found is not None,
        detail="it is not known where its listener is" if found is None else f"its listener is {found}",
        remedy="name it with --endpoint host:port, or with --config FILE where the node is in",
        may_pass_later=True,
    )


def _majority(voters: Iterable[int], alive: Iterable[int]) -> Check:
    """Of the voters as they would be: the change itself needs a majority of them to be committed."""
    count, running = len(set(voters)), sorted(set(alive))
    majority = count // 2 + 1
    spare = len(running) - majority
    said = ", ".join(str(node_id) for node_id in running) or "none"
    return Check(
        name="majority",
        passed=spare >= 0,
        detail=f"afterwards {size_in_words(count)}; alive now: {said}",
        remedy="too few would be alive to commit the change, or anything after it: start voters first",
        may_pass_later=True,
    )


def size_in_words(voters: int) -> str:
    """`3 voter(s), majority 2: 1 may fail`."""
    majority = voters // 2 + 1
    may_fail = voters - majority
    return f"{voters} voter(s), majority {majority}: {may_fail or 'none'} may fail"
