"""How a run fails."""


class InvariantBroken(AssertionError):
    """A property of the protocol does not hold; the run's seed replays it."""
