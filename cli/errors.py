"""A failure to be told to the user in one clear line."""

from cli.exit_status import ExitStatus


class CliError(Exception):
    """The message names the thing, the place and the remedy; the process ends with `status`."""

    def __init__(self, message: str, *, status: ExitStatus = ExitStatus.FAILED) -> None:
        self.status = status
        super().__init__(message)
