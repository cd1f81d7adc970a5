"""Changing the voters of a running quorum: looked at, asked for, and waited for until it is committed."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cli.cluster_addresses import KnownControllers
from cli.cluster_client import ClusterClient, check_error
from cli.errors import CliError
from cli.exit_status import ExitStatus
from cli.question import Question, Unanswered
from cli.quorum_status import NOT_THE_LEADER, QuorumStatus
from cli.quorum_view import LOOK_ON_S, QuorumView, look
from cli.voter_points import Candidate, Check
from node.config.addresses import HostPort
from wire.protocol.apis import ApiKey
from wire.uuids import uuid_from_text

PAUSE_S = 0.1
LOOK_AGAIN_S = 0.02
LAST_LOOK_S = 0.3  # before the time is up: a look that the end of the time cuts off tells nothing
# While nodes are restarted one by one, two of three may refuse connections for a moment.
LOST_FOR_S = 1.0
_NONE, _REQUEST_TIMED_OUT, _DUPLICATE_VOTER, _VOTER_NOT_FOUND = 0, 7, 126, 127
_UPGRADE_ONLY = 1
DOUBT = "the request may have been carried out: look with `kquorum quorum status`"

Look = Callable[[QuorumView], list[Check]]


class LostMajority:
    """Whether there has been no majority in every round for so long, hence in two rounds at least."""

    def __init__(self) -> None:
        self._since_s: float | None = None

    def lasts(self, now_s: float, *, is_lost: bool) -> bool:
        """To be called after each round."""
        if not is_lost:
            self._since_s = None
            return False
        if self._since_s is None:
            self._since_s = now_s
        return now_s - self._since_s >= LOST_FOR_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """`after` is None where nothing was done: for want of a passed pre-flight, or by wish."""

    command: str
    checks: Sequence[Check]
    before: QuorumStatus
    after: QuorumStatus | None = None
    took_ms: int | None = None

    @property
    def passed(self) -> bool:
        return all(check.passed for check in self.checks)

    @property
    def nothing_to_do(self) -> str | None:
        """Why, where what was asked for is so already."""
        return next((check.detail for check in self.checks if check.is_wished), None)

    def as_json(self) -> dict[str, object]:
        return {
            "command": self.command,
            "preflight_passed": self.passed,
            "done": self.after is not None,
            "took_ms": self.took_ms,
            "nothing_to_do": self.nothing_to_do,
            "checks": [check.as_json() for check in self.checks],
            "before": self.before.as_json(),
            "after": None if self.after is None else self.after.as_json(),
        }


async def preflight(
    client: ClusterClient, checks_of: Look, *, wait: bool, tell: Callable[[str], None]
) -> tuple[QuorumView, list[Check]]:
    """The checks, once it could be seen who is alive; with `wait` they are made again, until the time is up, while
    only waiting can help."""
    loop = asyncio.get_running_loop()
    first = await look(client)
    looked_on_at = loop.time() + LOOK_ON_S
    if any(check.is_wished for check in checks_of(first)):
        return first, checks_of(first)
    deadline = max(looked_on_at, client.deadline - LAST_LOOK_S) if wait else looked_on_at
    told: set[str] = set()
    while True:
        view = await look(client, first)
        checks = checks_of(view)
        failed = [check for check in checks if not check.passed]
        is_hopeless = any(not check.may_pass_later for check in failed)
        if loop.time() >= (looked_on_at if is_hopeless else deadline):
            return view, checks
        if all(not check.may_pass_later for check in failed):
            return view, checks  # nothing failed, or nothing that looking on would change
        for check in failed if loop.time() >= looked_on_at else ():
            if check.name not in told:
                told.add(check.name)
                tell(f"waiting: {check.detail}")
        await asyncio.sleep(PAUSE_S)


def voters_of(view: QuorumView, known: KnownControllers) -> KnownControllers:
    """Should the leader be lost, the voters that it named tell whether there can be another one."""
    places = {HostPort(node.host, node.port): node.node_id for node in view.status.nodes}
    voters = frozenset(voter.replica_id for voter in view.status.voters)
    return KnownControllers({**places, **known.ids}, voters)


async def add_voter(
    client: ClusterClient, cluster_id: str | None, candidate: Candidate, listener: str
) -> None:
    """Returns once the leader says that it is committed. Raises CliError for a refusal."""
    assert candidate.directory_id is not None
    assert candidate.endpoint is not None
    body = {
        "cluster_id": cluster_id,
        "timeout": client.remaining_ms,
        "voter_id": candidate.node_id,
        "voter_directory_id": uuid_from_text(candidate.directory_id),
        "listeners": [{"name": listener, "host": candidate.endpoint.host, "port": candidate.endpoint.port}],
        "ack_when_committed": True,
    }
    what = f"node {candidate.node_id} was not added to the voters"
    await _change(client, ApiKey.ADD_RAFT_VOTER, body, what, done=_DUPLICATE_VOTER)


async def remove_voter(
    client: ClusterClient, cluster_id: str | None, node_id: int, directory_id: str | None
) -> None:
    """Returns once the leader says that it is committed. Raises CliError for a refusal."""
    body = {
        "cluster_id": cluster_id,
        "voter_id": node_id,
        "voter_directory_id": None if directory_id is None else uuid_from_text(directory_id),
    }
    what = f"node {node_id} was not removed from the voters"
    await _change(client, ApiKey.REMOVE_RAFT_VOTER, body, what, done=_VOTER_NOT_FOUND)


async def _change(
    client: ClusterClient, api_key: ApiKey, body: Mapping[str, object], what: str, *, done: int
) -> None:
    """Ask until it is done or refused for good.

    REQUEST_TIMED_OUT is the leader's "not now" (another change is under way, say) as well as its "not yet committed".
    In the second case the next request finds the work done, which the error `done` then tells. So may a leader that
    steps down have begun it.
    """
    leader = client.answered_by
    was_asked = False
    loop = asyncio.get_running_loop()
    lost = LostMajority()

    def is_hopeless(question: Question) -> bool:
        is_lost = client.known.lack_a_majority(answering=question.refused, silent=question.silent)
        return lost.lasts(loop.time(), is_lost=is_lost) and client.leader_timeout_ms is not None

    while True:
        try:
            response = await client.ask(
                api_key,
                body,
                accept=_is_from_leader,
                refusal=lambda _: "answers, but does not lead",
                is_hopeless=is_hopeless,
                doubt=DOUBT,
                wanted="the leader to commit the change",
            )
        except Unanswered as error:
            error.question.may_be_done |= was_asked or leader in client.refused_by
            raise
        was_asked = was_asked or client.was_in_doubt or leader in client.refused_by
        code = int(response.error_code)
        if code == _NONE or (was_asked and code == done):
            return
        if code != _REQUEST_TIMED_OUT:
            check_error(code, response.error_message, what)
        if loop.time() >= client.deadline - PAUSE_S:
            reason = f" ({response.error_message})" if response.error_message else ""
            raise CliError(
                f"the leader did not say within {client.timeout_ms} ms that it is done{reason}; {DOUBT}",
                status=ExitStatus.UNREACHABLE,
            )
        was_asked = True
        await asyncio.sleep(PAUSE_S)


def _is_from_leader(response: Any) -> bool:
    return int(response.error_code) not in NOT_THE_LEADER


async def upgrade(client: ClusterClient, *, validate_only: bool) -> None:
    """kraft.version 0 to 1, as `kafka-features upgrade --feature kraft.version=1` asks for it. Raises CliError."""
    update = {
        "feature": "kraft.version",
        "max_version_level": 1,
        "upgrade_type": _UPGRADE_ONLY,
        "allow_downgrade": False,
    }
    body = {"timeout": client.remaining_ms, "feature_updates": [update], "validate_only": validate_only}
    response = await client.ask(
        ApiKey.UPDATE_FEATURES, body, accept=_is_from_leader, doubt=None if validate_only else DOUBT
    )
    what = "kraft.version cannot be upgraded" if validate_only else "kraft.version was not upgraded"
    check_error(int(response.error_code), response.error_message, what)
    for result in getattr(response, "results", ()):
        check_error(int(result.error_code), result.error_message, what)


async def wait_for(client: ClusterClient, is_reached: Callable[[QuorumView], bool], what: str) -> QuorumView:
    """The first view in which it is so. Raises CliError when it is not in time: it may still come."""
    try:
        while True:
            view = await look(client)
            if is_reached(view):
                return view
            if asyncio.get_running_loop().time() >= client.deadline:
                break
            await asyncio.sleep(LOOK_AGAIN_S)
    except Unanswered as error:
        missed = f": {error}"  # which says how long it was asked for, where the time was up
    else:
        missed = f" within {client.timeout_ms} ms"
    raise CliError(
        f"{what} was agreed to, but did not show{missed}; see `kquorum quorum status`",
        status=ExitStatus.FAILED,
    )


def resolve(
    view: QuorumView,
    node_id: int,
    *,
    directory_id: str | None,
    endpoint: HostPort | None,
    configured: HostPort | None,
    is_configured_controller: bool | None,
) -> Candidate:
    """Who is meant by an id: the directory id comes from its fetches, the endpoint from what was typed, the config, or
    its own registration, in this order (demand D7: nobody types what the cluster knows)."""
    observer = view.observer(node_id)
    known = view.registered.get(node_id)
    is_controller = is_configured_controller
    if is_controller is None and (known is not None or endpoint is not None):
        is_controller = True
    return Candidate(
        node_id=node_id,
        directory_id=directory_id or (None if observer is None else observer.directory_id),
        endpoint=endpoint or configured or known,
        is_controller=is_controller,
    )
