"""Rich's console, without the control characters that a foreign name or address may hold."""

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from kquorum.wire.safe_text import safe_lines


class SafeConsole(Console):
    """Whatever is printed passes through `render` as segments of text; colours and the control of the cursor, which are
    our own, are no part of that text."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            text, style, control = segment
            yield segment if control else Segment(safe_lines(text), style)
