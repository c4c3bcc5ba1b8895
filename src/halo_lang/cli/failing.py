"""The error that ends a command with one message."""

from __future__ import annotations


class CommandError(Exception):
    """A message for the user, and the exit code: 1 failed, 2 wrong usage (cli.md)."""

    def __init__(self, message: str, exit_code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = exit_code
