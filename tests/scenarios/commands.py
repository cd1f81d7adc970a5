"""The commands that a script knows, by name."""

from collections.abc import Callable

from tests.scenarios.arguments import Arguments
from tests.scenarios.cluster import Cluster
from tests.scenarios.commands_asking import propose, read, resign, shutdown, transfer, upgrade, voter_change
from tests.scenarios.commands_faults import (
    crash,
    cut,
    disk,
    draw,
    flush,
    heal,
    partition,
    pause,
    restart,
    resume,
    space,
    start,
)
from tests.scenarios.commands_messages import (
    answer,
    deliver,
    drop,
    duplicate,
    fail,
    hold,
    release,
    request,
)
from tests.scenarios.commands_setup import cluster, given
from tests.scenarios.commands_time import advance, elect, run, skip, timeout, watch
from tests.scenarios.errors import ScenarioError
from tests.scenarios.expectations import expect
from tests.scenarios.views import hide, log, messages, show, state

Handler = Callable[[Cluster, Arguments], None]

_NAMED: tuple[Handler, ...] = (
    *(cluster, given, start, restart, crash, pause, resume, disk, space, flush, draw),
    *(partition, cut, heal),
    *(advance, run, watch, skip, timeout, elect),
    *(deliver, drop, hold, release, duplicate, fail, answer, request),
    *(propose, resign, shutdown, read, transfer, upgrade),
    *(state, log, messages, hide, show, expect),
)
COMMANDS: dict[str, Handler] = {handler.__name__: handler for handler in _NAMED} | {
    kind: voter_change(kind) for kind in ("add-voter", "remove-voter", "update-voter")
}


def carry_out(target: Cluster, words: list[str]) -> None:
    """Raises ScenarioError for what is unknown, missing or left over."""
    name, *rest = words
    if name not in COMMANDS:
        raise ScenarioError(f"unknown command '{name}'; known: {', '.join(sorted(COMMANDS))}")
    arguments = Arguments.of(rest)
    target.transcript.begin_command()
    COMMANDS[name](target, arguments)
    arguments.finish()
