"""Random sources that answer in a known way."""


class MiddleRandomSource:
    """Always the middle: no jitter."""

    def randint(self, low: int, high: int) -> int:
        return (low + high) // 2


class HighestRandomSource:
    def randint(self, low: int, high: int) -> int:
        return high
