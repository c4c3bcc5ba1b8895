"""Files that a command writes: replaced as a whole, so that an interruption leaves the old one or the new one."""

from __future__ import annotations

import os

from .failing import CommandError


def replace_file(name: str, data: bytes) -> None:
    """Writes a file, keeping the mode of one that is there; into a device or a pipe, as it is no file to be replaced.
    Raises `CommandError` naming it."""
    from tempfile import mkstemp

    target = os.path.realpath(name)
    temporary = None
    try:
        if os.path.exists(name) and not os.path.isfile(name):
            with open(name, "wb") as device:
                device.write(data)
            return
        mode = os.stat(target).st_mode & 0o7777 if os.path.exists(target) else 0o666 & ~_umask()
        handle, temporary = mkstemp(prefix=".halo-", dir=os.path.dirname(target))
        with open(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, mode)
        os.replace(temporary, target)
    except OSError as trouble:
        if temporary is not None and os.path.exists(temporary):
            os.unlink(temporary)
        raise CommandError(f"{name}: cannot be written: {trouble.strerror}") from None


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
