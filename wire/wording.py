"""Numbers with their nouns."""


def counted(count: int, noun: str) -> str:
    """`1 topic`, `3 topics`, `1,697 topics`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
