"""The error that ends a command with one message."""

from __future__ import annotations


class CommandError(Exception):
    """A message for the user, and the exit code: 1 failed, 2 wrong usage (cli.md). With `code`, an error code of
    `halo explain`, the message begins with that."""

    def __init__(self, message: str, exit_code: int = 1, *, code: str | None = None) -> None:
        super().__init__(message if code is None else f"{code}: {message}")
        self.exit_code = exit_code
        self.code = code
        self.message = message
