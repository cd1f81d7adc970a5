"""A failure to be told to the user in one clear line."""

from cli.exit_status import ExitStatus


class CliError(Exception):
    """The message names the thing, the place and the remedy; the process ends with `status`."""

    def __init__(
        self, message: str, *, status: ExitStatus = ExitStatus.FAILED, is_in_json: bool = False
    ) -> None:
        """`is_in_json`: what `--json` printed has told it already."""
        self.status = status
        self.is_in_json = is_in_json
        super().__init__(message)
