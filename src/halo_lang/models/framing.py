"""The key of the markers around data in what this process sends (boundary/prompt.py).

Owns the secret that it is made from. With it no text can foretell the markers, and they stay as they are while a
conversation grows, so that a provider can keep what it has read before.
"""

from __future__ import annotations

import os

from ..boundary.prompt import frame_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..boundary.call import ModelRequest

_SECRET = os.urandom(16).hex()


def key_of(request: ModelRequest) -> str | None:
    """The key for a request that is sent; None where it holds no data that needs a frame."""
    return frame_key(request, _SECRET)
