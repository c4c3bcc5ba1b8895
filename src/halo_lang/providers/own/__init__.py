"""Functions and classes of Python as providers (library.md, docs/how-to/own-tools.md).

Read `types.py` for what types become, `describing.py` for the description, `calling.py` for the calls.
"""
