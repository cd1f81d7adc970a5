"""`kquorum random-uuid`: an id in Kafka's text form."""

import typer

from kquorum.cli.command_tree import Command, Panel


def random_uuid() -> None:
    """Print a random uuid in Kafka's text form: a cluster id, or a directory id for --initial-controllers."""
    from kquorum.node.formatting import new_uuid
    from kquorum.wire.uuids import uuid_to_text

    typer.echo(uuid_to_text(new_uuid()))


COMMAND = Command(
    run=random_uuid,
    summary="Make a cluster id or a directory id.",
    panel=Panel.RUN,
    place=2,
    examples={
        "": ("kquorum format -c server.properties -t $(kquorum random-uuid)",),
    },
)
