"""The named schedules, and how one is run."""

from collections.abc import Callable
from dataclasses import dataclass

from tests.simulation.directed.stage import Stage


class ScheduleFailed(AssertionError):
    """Carries the schedule's name, the facts, and the trace."""

    def __init__(self, name: str, cause: BaseException, stage: Stage | None) -> None:
        trace = "\n".join(stage.trace[-40:]) if stage is not None else ""
        super().__init__(
            f"{name}: {type(cause).__name__}: {cause}\n"
            f"replay: python -m tests.simulation.directed {name}\n{trace}"
        )
        self.cause = cause
        self.now_ms = stage.now_ms if stage is not None else 0


@dataclass(frozen=True)
class Schedule:
    """`make` sets the stage, `play` is the schedule; the first line of its docstring says what must hold."""

    name: str
    make: Callable[[], Stage]
    play: Callable[[Stage], None]

    @property
    def what_must_hold(self) -> str:
        return (self.play.__doc__ or "").split("\n")[0]

    def run(self) -> Stage:
        """Raises ScheduleFailed."""
        stage: Stage | None = None
        try:
            stage = self.make()
            self.play(stage)
            stage.finish()
        except Exception as cause:
            raise ScheduleFailed(self.name, cause, stage) from cause
        return stage


SCHEDULES: dict[str, Schedule] = {}


def schedule(make: Callable[[], Stage]) -> Callable[[Callable[[Stage], None]], Callable[[Stage], None]]:
    """Enter a schedule under its function's name."""

    def enter(play: Callable[[Stage], None]) -> Callable[[Stage], None]:
        name = play.__name__
        assert name not in SCHEDULES
        SCHEDULES[name] = Schedule(name, make, play)
        return play

    return enter
