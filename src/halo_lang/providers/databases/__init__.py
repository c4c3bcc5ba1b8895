"""Databases: SQLite files and PostgreSQL servers, for `Sql` and for the stores.

Read `places.py` for where a file may be, `sqlite.py` and `postgres.py` for `Sql`, `store.py` for the stores.
"""
