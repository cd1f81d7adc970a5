"""Principals on the command line."""

import typer


def checked_principal(text: str) -> tuple[str, str]:
    """Type and name of `User:alice`. Raises BadParameter."""
    kind, separator, name = text.partition(":")
    if not (kind and separator and name):
        raise typer.BadParameter(f"{text!r} is no principal: write TYPE:NAME, as User:alice")
    return kind, name
