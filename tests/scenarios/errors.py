"""What can be wrong with a scenario."""


class ScenarioError(Exception):
    """A command that cannot be carried out, or an expectation that does not hold; says where: `file:line`."""

    def __init__(self, message: str, path: str = "", line: int = 0) -> None:
        super().__init__(f"{path}:{line}: {message}" if path else message)
        self.message = message
