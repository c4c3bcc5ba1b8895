"""The files below one folder, reached so that no path can lead out of it (tools.md §2).

`paths.py` reads a path as text, `guard.py` knows what is kept from every path, `beneath.py` opens what a path names;
`reading.py`, `writing.py` and `finding.py` do the work on what was opened. All of it blocks: `workspace.py` calls it
in threads.
"""
