"""`kquorum random-uuid`: an id in Kafka's text form."""

import typer


def random_uuid() -> None:
    """Print a random uuid in Kafka's text form: a cluster id, or a directory id for --initial-controllers."""
    from cli.formatting import new_uuid
    from wire.uuids import uuid_to_text

    typer.echo(uuid_to_text(new_uuid()))
