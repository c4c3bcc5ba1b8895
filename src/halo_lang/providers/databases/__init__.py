"""Databases: SQLite files and PostgreSQL servers, for `Sql` and for the stores.

Read `places.py` for where a file may be, `sqlite.py`, `postgres.py` and `relay.py` for `Sql`, `store.py` for stores.
"""
