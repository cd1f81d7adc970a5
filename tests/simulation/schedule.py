"""The faults of a run as a list drawn before it begins, so that a failing run can be tried again with fewer."""

from dataclasses import dataclass
from random import Random

from tests.simulation.options import Options

LEADER = 0  # `who` of an action that strikes whichever node leads at that moment


@dataclass(frozen=True, slots=True)
class Action:
    """At `at_ms`, `kind` happens to `who` for `for_ms`; `amount` is what that kind makes of it.

    `who` is `LEADER` or the n-th host, counting from 1.
    """

    at_ms: int
    kind: str
    who: int
    for_ms: int
    amount: int


@dataclass(frozen=True, slots=True)
class Kind:
    """How one kind of action is drawn; times are in fetch timeouts of the world, so that every world gets each."""

    name: str
    weight: int
    for_timeouts: tuple[float, ...]
    amounts: tuple[int, ...] = (0,)
    prefers_leader: bool = True


KINDS = (
    Kind("crash", 4, (0.05, 0.5, 2, 6)),
    Kind("power cut", 2, (0.1, 1, 8), prefers_leader=False),
    Kind("cut off", 3, (0.5, 2, 5, 12), amounts=(0, 0, 1, 2)),
    Kind("split", 3, (0.5, 2, 5, 12), amounts=tuple(range(1, 31)), prefers_leader=False),
    Kind("bridge", 2, (2, 5, 12), prefers_leader=True),
    Kind("ring", 1, (2, 5, 12), prefers_leader=False),
    Kind("cut link", 3, (0.5, 2, 5, 12), amounts=tuple(range(1, 9))),
    Kind("partial cut", 3, (5, 10, 20), amounts=tuple(range(1, 1024)), prefers_leader=False),
    Kind("pause", 4, (0.2, 1, 3, 8)),
    Kind("loss", 2, (1, 4, 10), amounts=(1, 5, 20, 50), prefers_leader=False),
    Kind("duplicates", 2, (2, 5, 15), amounts=(10, 50), prefers_leader=False),
    Kind("slow network", 2, (1, 3, 8), amounts=(20, 50, 100), prefers_leader=False),
    Kind("slow disk", 2, (1, 4, 10), amounts=(20, 100, 200)),
    Kind("death after vote", 3, (0.05, 0.5, 4), prefers_leader=False),
    Kind("death of new leader", 3, (0.05, 0.5, 4), amounts=(0, 1, 5, 30), prefers_leader=False),
    Kind("death in turn", 3, (0.05, 0.5, 4), amounts=(1, 2, 3)),
    Kind("flush error", 2, (0.05, 1, 4)),
    Kind("shutdown", 2, (0.5, 2, 6)),
    Kind("resignation", 2, (0,)),
    Kind("transfer", 2, (0,), prefers_leader=False),
    Kind("lose state", 2, (0.1, 1, 5)),
    Kind("add voter", 6, (0,), prefers_leader=False),
    Kind("remove voter", 4, (0,)),
    Kind("move", 2, (0.1, 1, 5)),
    Kind("replace disk", 2, (0.1, 1, 5)),
    Kind("upgrade", 8, (0,), prefers_leader=False),
    Kind("burst", 2, (0,), amounts=(5, 20, 40)),
    Kind("snapshot", 3, (0,)),
    Kind("retention", 4, (0,)),
    Kind("bad download", 2, (0,), prefers_leader=False),
    Kind("full disk", 3, (0.1, 1, 5)),
    Kind("damaged disk", 3, (0.1, 1, 5), amounts=(0, 1, 3, 10, 1000)),
    Kind("death over snapshot", 4, (0.05, 0.5, 4), amounts=(0, 1, 2, 3, 4), prefers_leader=False),
)
# Changes of the voters, by the kind of quorum: static ones are not changed, and dynamic ones need no upgrade.
CHANGES = {
    "static": (),
    "dynamic": ("add voter", "remove voter", "move", "replace disk"),
    "upgraded": ("add voter", "remove voter", "move", "replace disk", "upgrade"),
}
APART = ("partial cut", *CHANGES["upgraded"])


def kinds_of(quorum: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The changes of the voters, and the other kinds of fault."""
    return CHANGES[quorum], tuple(kind.name for kind in KINDS if kind.name not in APART)


def draw_schedule(options: Options, random_source: Random) -> tuple[Action, ...]:
    """The actions of a run, in the order of time."""
    kinds = [kind for kind in KINDS if kind.name in options.faults]
    if not kinds:
        return ()
    chosen = random_source.choices(kinds, [kind.weight for kind in kinds], k=options.fault_count)
    actions = [_draw(kind, options, random_source) for kind in chosen]
    return tuple(sorted(actions, key=lambda action: action.at_ms))


def _draw(kind: Kind, options: Options, random_source: Random) -> Action:
    hosts = options.voters + options.spares + options.observers
    strikes_leader = kind.prefers_leader and random_source.random() < 0.5
    for_ms = int(
        random_source.choice(kind.for_timeouts) * options.fetch_timeout_ms * (0.5 + random_source.random())
    )
    return Action(
        at_ms=random_source.randint(1, options.faults_until_ms),
        kind=kind.name,
        who=LEADER if strikes_leader else random_source.randint(1, hosts),
        for_ms=max(1, for_ms),
        amount=random_source.choice(kind.amounts),
    )
