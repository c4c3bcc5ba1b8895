"""The Python library (docs/reference/library.md): programs, runs, recordings, for whoever embeds Halo.

Prints nothing, keeps no global state, and records nothing unless asked. Import its names from `halo_lang`.
"""

from logging import NullHandler, getLogger

getLogger("halo").addHandler(NullHandler())  # else Python prints what nobody takes
