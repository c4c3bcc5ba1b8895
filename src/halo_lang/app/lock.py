"""`halo.lock`: what MCP servers said of their tools when somebody locked them (plan.md).

Owns the file beside a program: its form, its reading for a check, a plan or a run (only where the program has an MCP
server that it could know), and its new text. Starts no server: that is `locking.py`. A server is known in it by how the
program declares it, so that several programs beside each other share the file.
"""

from __future__ import annotations

import os.path

from ..boundary.host import ConfigError
from ..catalog.builtin import PROVIDERS
from ..catalog.claims import about_of, words_of
from ..catalog.describe import EXTERNAL, READ, EnvRef, Method
from ..language.record import replace
from ..language.values import to_json
from .above import read_whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, TypeAlias

    from ..catalog.describe import Provider, Settings

    Locked: TypeAlias = dict[str, tuple[Method, ...]]
    """The methods of each server, by `server_key`."""

NAME = "halo.lock"
VERSION = 1
MAX_BYTES = 16 << 20
MCP = "Mcp"


def lock_file(program: str) -> str:
    """The path of the lock that belongs to a program."""
    return os.path.join(os.path.dirname(os.path.realpath(program)), NAME)


def server_key(settings: Settings) -> str:
    """What a server is known by: its command and arguments, or its address, as the program declares them, as JSON."""

    def said(value: Any) -> Any:
        return {"env": value.name} if isinstance(value, EnvRef) else value

    if settings.get("url") is not None:
        return to_json({"url": said(settings["url"])})
    return to_json({"command": [said(settings.get("command")), *map(said, settings.get("arguments") or ())]})


def with_lock(program: str, providers: Mapping[str, Provider] = PROVIDERS) -> Mapping[str, Provider]:
    """The providers as a program's lock lets them be known: `Mcp` describes the servers that are in it.

    The file is read when a server is first asked about; then `ConfigError` is raised for one that has an error.
    """
    known: Locked | None = None

    def describe(settings: Settings) -> tuple[Method, ...] | None:
        nonlocal known
        if known is None:
            known = read_lock(lock_file(program))
        return known.get(server_key(settings))

    return {**providers, MCP: replace(providers[MCP], describe=describe)}


def read_lock(file: str) -> Locked:
    """What a lock holds; nothing where there is none. Raises `ConfigError` for one that cannot be read."""
    try:
        data = read_whole(file, MAX_BYTES)
    except FileNotFoundError:
        return {}
    except OSError as trouble:
        raise ConfigError(f"{file}: cannot be read: {trouble.strerror}; {_way_out()}") from None
    from json import loads

    try:
        document = loads(data)
    except (ValueError, RecursionError):
        document = None
    version = document.get("version") if isinstance(document, dict) else None
    if type(version) is int and version != VERSION:
        raise ConfigError(f"{file}: it has version {version}, and this Halo reads version {VERSION}; {_way_out()}")
    try:
        if not isinstance(document, dict) or type(version) is not int:
            raise ValueError(version)
        return {to_json(one["server"]): tuple(map(_method, one["tools"])) for one in document["servers"]}
    except (KeyError, TypeError, ValueError):
        raise ConfigError(f"{file}: it is damaged; {_way_out()}") from None


def lock_text(locked: Locked) -> str:
    """The text of a lock: the same for the same servers, in whatever order they come."""
    from json import dumps, loads

    servers = [
        {"server": loads(key), "tools": [_entry(method) for method in sorted(methods, key=lambda m: m.name)]}
        for key, methods in sorted(locked.items())
    ]
    return dumps({"version": VERSION, "servers": servers}, ensure_ascii=False, indent=2) + "\n"


def _entry(method: Method) -> dict[str, Any]:
    return {
        "name": method.name,
        "effect": method.effect,
        "idempotent": method.idempotent,
        "description": words_of(method.about),
        "schema": method.schema,
    }


def _method(entry: Any) -> Method:
    """A method as the lock has it. Raises `ValueError` for an entry that Halo has not written: the plan shows these
    names and effects, so nothing else may pass for them."""
    name, effect, words, schema = entry["name"], entry["effect"], entry["description"], entry["schema"]
    fits = (
        isinstance(name, str)
        and name.isascii()
        and name.isidentifier()
        and effect in (READ, EXTERNAL)
        and isinstance(entry["idempotent"], bool)
        and isinstance(words, str)
        and words.isprintable()
        and isinstance(schema, dict)
        and isinstance(schema.get("properties", {}), dict)
        and isinstance(schema.get("required", []), list)
        and all(isinstance(inner, dict) for inner in schema.get("properties", {}).values())
        and all(isinstance(required, str) for required in schema.get("required", []))
    )
    if not fits:
        raise ValueError(name)
    return Method(name, about_of(words), schema, effect, entry["idempotent"], claimed=True)


def _way_out() -> str:
    return "remove it and make it anew with `halo lock`"
