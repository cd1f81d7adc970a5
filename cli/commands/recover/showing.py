"""A plan and an outcome of `kquorum recover` as tables, lines or JSON; and where the node listens from now on."""

from dataclasses import asdict
from pathlib import Path

from kquorum.cli.clients.addresses import DEFAULT_CONFIG
from kquorum.cli.commands.recover.running import Recovered
from kquorum.cli.commands.recover.survey import Plan, Survivor, remedy_of
from kquorum.cli.failures import CliError, ExitStatus, usage_error
from kquorum.cli.output import complain, print_json, print_table, say, utc_text
from kquorum.node.config.addresses import WILDCARD_HOSTS, parse_host_port
from kquorum.node.config.load import load_config
from kquorum.node.endpoints import controller_endpoints
from kquorum.raft.voters import Endpoint
from kquorum.wire.wording import counted


def show_plan(plan: Plan, *, as_json: bool) -> None:
    if as_json:
        print_json(plan.as_json())
        return
    rows = [
        (
            survivor.node_id,
            _role(plan, survivor),
            survivor.epoch,
            survivor.end_offset,
            survivor.committed_offset,
            "" if survivor.last_timestamp_ms is None else utc_text(survivor.last_timestamp_ms),
            survivor.state_hash[:8],
            str(survivor.folder),
        )
        for survivor in plan.survivors
    ]
    columns = (
        "#node",
        "is",
        "#epoch",
        "#log end",
        "#committed\nat least",
        "last record (UTC)",
        "state",
        "folder",
    )
    print_table(
        f"cluster {plan.best.cluster_id}",
        columns,
        rows,
        spare=("state", "last record (UTC)"),
        folding="folder",
    )
    for survivor in plan.survivors:
        if survivor.damage is not None:
            complain(f"{survivor.folder}: {survivor.damage}", style="yellow", label="damage")
    voters = f"the voters are {', '.join(plan.voters)} (kraft.version {plan.best.kraft_version})"
    say(f"{voters}; {len(plan.left)} of {len(plan.voters)} are left, {plan.majority} are needed")
    if plan.has_majority:
        say("no recovery is needed: start the nodes that are left, and replace the others one by one")
        return
    best = plan.best
    say(
        f"the best folder is {best.folder}: node {best.node_id}, epoch {best.epoch}, {counted(best.topics, 'topic')}"
    )
    for line in plan.losses():
        say(f"  {line}")
    for ahead in plan.ahead:
        say(f"  {remedy_of(ahead)}")


def _role(plan: Plan, survivor: Survivor) -> str:
    if survivor is plan.best:
        return "best voter"
    if survivor.damage is not None:
        return "damaged"
    if survivor.is_lost:
        return "lost its state"
    if survivor in plan.left:
        return "voter"
    return "no voter"


def show_recovered(plan: Plan, done: Recovered, *, as_json: bool) -> None:
    if as_json:
        values = asdict(done) | {"folder": str(done.folder), "fenced": [str(each) for each in done.fenced]}
        print_json({"plan": plan.as_json(), "recovered": values})
        return
    show_plan(plan, as_json=False)
    say(
        f"recovered: node {done.node_id} is the only voter from offset {done.offset} on, in epoch {done.epoch}"
    )
    for folder in done.fenced:
        say(f"  fenced: {folder}")
    say_next(done)


def say_next(done: Recovered) -> None:
    """What the operator does next."""
    if done.is_dynamic:
        say(
            "next: in all configs, set controller.quorum.bootstrap.servers in place of controller.quorum.voters; "
            "start node "
            f"{done.node_id}; give each other controller an empty folder (`kquorum format "
            "--no-initial-controllers`), start "
            "it, and run `kquorum quorum add-voter ID --wait`"
        )
    else:
        say(
            f"next: make node {done.node_id} the only voter in controller.quorum.voters of all configs, for this "
            "metadata.version knows static voters only; start it, and upgrade (`kquorum features upgrade`)"
        )


def listener_of(best: Survivor, typed: str | None, config: Path | None) -> tuple[Endpoint, ...]:
    """Where the node's controller listener is: as typed, or of the config; nothing if neither says. Raises CliError."""
    if typed is not None:
        name, separator, address = typed.partition("://")
        try:
            host, port = parse_host_port(address)
        except ValueError as error:
            raise usage_error(f"--listener: {typed!r}: {error}") from None
        if not separator or not name or host in WILDCARD_HOSTS:
            raise usage_error(
                f"--listener: {typed!r} is not NAME://HOST:PORT with a host that others can connect to"
            )
        return (Endpoint(name.upper(), host, port),)
    if config is None and not DEFAULT_CONFIG.exists():
        return ()
    cluster = load_config(config or DEFAULT_CONFIG)
    node = next((each for each in cluster.nodes if each.node_id == best.node_id), None)
    if node is None or not node.is_controller:
        raise CliError(
            f"{cluster.path} has no controller with node.id {best.node_id}: correct it, or give --listener",
            status=ExitStatus.USAGE,
        )
    return controller_endpoints(node)[:1]
