"""The work of `log state-hash`: the hash that a node which stands at this point of this log has."""

from pathlib import Path

from kquorum.cli.commands.log.files import the_log, within_its_end
from kquorum.cli.commands.log.states import Moment, state_at
from kquorum.cli.failures import ExitStatus
from kquorum.cli.output import complain, print_json, say
from kquorum.metadata.state_hash.image_hash import SCHEME, hash_of_image, state_hash_text
from kquorum.wire.wording import counted


def state_hash(path: Path, last_offset: int | None, *, as_json: bool) -> ExitStatus:
    """Of the state whose last offset is this one, or of the newest; raises CliError where there is none."""
    log = within_its_end(the_log(path), _warn, keeps_newest=True)
    moment = Moment() if last_offset is None else Moment(last_offset + 1)
    state = state_at(log, moment, _warn)
    for fault in state.faults[:1]:
        _warn(
            f"{counted(len(state.faults), 'record')} could not be replayed, the first at offset {fault.offset}: "
            f"{fault.reason}"
        )
    text = state_hash_text(hash_of_image(state.image))
    offset = state.image.provenance.last_contained_offset
    if state.transaction_start_offset is None:
        offset = max(offset, state.offset - 1)
    if as_json:
        print_json({"source": log.source, "offset": offset, "state_hash": text, "scheme": SCHEME})
    else:
        say(f"{text} at offset {offset}")
    return ExitStatus.DAMAGED_INPUT if state.faults else ExitStatus.OK


def _warn(message: str) -> None:
    complain(message, style="yellow", label="warning")
