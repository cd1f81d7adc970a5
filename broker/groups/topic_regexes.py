"""The regular expressions by which members of consumer groups subscribe to topics (rules G9.1 to G9.10).

RE2 matches in time linear in the name, whatever the expression: clients choose it. To look through all topics takes
long, so it is done part by part between other work.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Final

import re2

from kquorum.broker.groups.consumer_group import ResolvedRegex
from kquorum.broker.groups.group_errors import GroupError
from kquorum.metadata.image.image import MetadataImage
from kquorum.wire.messages.error_codes import ErrorCode

_MATCHES_AT_ONCE: Final = 1_000
# RE2 refuses an expression whose automaton is larger. Its own default is 8 MiB, which 1,000 members could ask for.
_MOST_BYTES: Final = 1 << 20


def _options() -> re2.Options:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MOST_BYTES
    return options


def check_regex(regex: str) -> None:
    """Raises GroupError."""
    try:
        re2.compile(regex, _options())
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        if isinstance(reason, bytes):
            reason = reason.decode(errors="replace")
        raise GroupError(
            ErrorCode.invalid_regular_expression,
            f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {reason}.",
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
        self._patterns = [(regex, re2.compile(regex, _options())) for regex in regexes]
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
