"""The regular expressions by which members of consumer groups subscribe to topics (rules G9.1 to G9.10).

To look through all topics takes long, so it is done part by part between other work.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Final

from kquorum.broker.coordinators.regexes import InvalidRegex, compiled
from kquorum.broker.groups.consumer_group import ResolvedRegex
from kquorum.broker.groups.group_errors import GroupError
from kquorum.metadata.image.image import MetadataImage
from kquorum.wire.messages.error_codes import ErrorCode

_MATCHES_AT_ONCE: Final = 1_000


def check_regex(regex: str) -> None:
    """Raises GroupError."""
    try:
        compiled(regex)
    except InvalidRegex as error:
        raise GroupError(
            ErrorCode.invalid_regular_expression,
            f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {error}.",
        ) from None


class RegexResolution:
    """Looks for the topics of several expressions in one image, for a client that sees topics for which `may_describe`
    is true."""

    def __init__(
        self,
        regexes: Collection[str],
        image: MetadataImage,
        may_describe: Callable[[str], bool],
    ) -> None:
        self._image = image
        self._may_describe = may_describe
        self._patterns = [(regex, compiled(regex)) for regex in regexes]
        self._found: dict[str, set[str]] = {regex: set() for regex in regexes}
        self._names: Iterator[str] = iter(image.topics.by_name)
        self._at_once = max(_MATCHES_AT_ONCE // max(len(self._patterns), 1), 1)

    def advance(self) -> bool:
        """Look through some more topics; whether that were all."""
        for _ in range(self._at_once):
            name = next(self._names, None)
            if name is None:
                return True
            matching = [regex for regex, pattern in self._patterns if pattern.fullmatch(name)]
            if matching and self._may_describe(name):
                for regex in matching:
                    self._found[regex].add(name)
        return False

    def result(self, now_ms: int) -> dict[str, ResolvedRegex]:
        version = self._image.provenance.last_contained_offset
        return {
            regex: ResolvedRegex(frozenset(topics), version, now_ms) for regex, topics in self._found.items()
        }
