"""The providers that Halo brings, described (tools.md §2).

Owns their descriptions alone; the classes that do the work stand in `providers` and are held to these by a test.
"""

from __future__ import annotations

from .describe import EXTERNAL, READ, WRITE, Method, Provider, Setting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .describe import Settings

_STRING = {"type": "string"}
_WHOLE = {"type": "integer", "minimum": 1}


def _schema(required: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
        "additionalProperties": False,
    }


def _said(schema: dict[str, Any], about: str) -> dict[str, Any]:
    return {**schema, "description": about}


_PATH = _said(_STRING, "A path relative to the folder.")

_WORKSPACE = (
    Method(
        "read",
        "Reads a text file, or some of its lines.",
        _schema(
            {"path": _PATH},
            {"from": _said(_WHOLE, "The first line, from 1."), "lines": _said(_WHOLE, "How many lines.")},
        ),
        READ,
        True,
        30.0,
    ),
    Method(
        "write",
        "Writes a whole text file, making missing folders.",
        _schema({"path": _PATH, "content": _said(_STRING, "All that the file will hold.")}),
        WRITE,
        True,
        30.0,
    ),
    Method(
        "edit",
        "Replaces a piece of a text file that stands in it exactly once.",
        _schema(
            {
                "path": _PATH,
                "old": _said(_STRING, "The text to replace, as it stands in the file, exactly once."),
                "new": _said(_STRING, "The text to put there."),
            }
        ),
        WRITE,
        False,
        30.0,
    ),
    Method("list", "Lists a folder; folders end in a slash.", _schema({}, {"path": _PATH}), READ, True, 30.0),
    Method(
        "glob",
        "Lists the files whose paths match a pattern such as `**/*.md`.",
        _schema({"pattern": _said(_STRING, "A pattern of `*`, `**`, `?` and `[abc]`.")}),
        READ,
        True,
        30.0,
    ),
    Method(
        "search",
        "Finds the lines that hold a text, or match a regular expression.",
        _schema(
            {"query": _said(_STRING, "What to look for.")},
            {"path": _PATH, "regex": _said({"type": "boolean"}, "Whether the query is a regular expression.")},
        ),
        READ,
        True,
        30.0,
    ),
    Method("mkdir", "Makes a folder, with those above it.", _schema({"path": _PATH}), WRITE, True, 30.0),
    Method("delete", "Deletes a file or an empty folder.", _schema({"path": _PATH}), WRITE, False, 30.0),
)


def _workspace(settings: Settings) -> tuple[Method, ...]:
    writes = settings.get("write") is True
    return tuple(m for m in _WORKSPACE if writes or m.effect == READ)


_BASH = (
    Method(
        "run",
        "Runs a command with bash and gives its stdout, stderr and exitCode.",
        _schema(
            {"command": _said(_STRING, "The command line.")},
            {
                "stdin": _said(_STRING, "What the command reads."),
                "values": {"type": "object", "description": "Texts by the name of the shell variable that holds them."},
            },
        ),
        EXTERNAL,
        False,
        None,
        ("values",),
    ),
)

_CHANNEL = _said(_STRING, "The channel; the tool's own where it is left out.")
_TS = _said(_STRING, "The message's `ts`.")

_SLACK = (
    Method(
        "post",
        "Posts a message.",
        _schema(
            {"text": _said(_STRING, "The message.")},
            {"channel": _CHANNEL, "thread": _said(_STRING, "The `ts` of the message to answer.")},
        ),
        EXTERNAL,
        False,
        30.0,
    ),
    Method(
        "update",
        "Changes a message.",
        _schema({"ts": _TS, "text": _said(_STRING, "The new text.")}, {"channel": _CHANNEL}),
        EXTERNAL,
        True,
        30.0,
    ),
    Method(
        "react",
        "Adds a reaction to a message.",
        _schema({"ts": _TS, "name": _said(_STRING, "The emoji's name, without colons.")}, {"channel": _CHANNEL}),
        EXTERNAL,
        True,
        30.0,
    ),
    Method(
        "history",
        "Reads the newest messages of a channel.",
        _schema({}, {"channel": _CHANNEL, "limit": _said(_WHOLE, "How many messages, 100 where it is left out.")}),
        READ,
        True,
        30.0,
    ),
)

_QUERY = _said(
    {"type": "object"}, "What stands after the `?`, by name; a list gives a name several times, null leaves it out."
)
_BODY = _said({}, "What is sent: text as it is, anything else as JSON.")
_WHERE = _said(_STRING, "A path below the tool's address, without `?` and `#`.")


def _sends(name: str, about: str, idempotent: bool) -> Method:
    schema = _schema({"path": _WHERE}, {"body": _BODY, "query": _QUERY})
    return Method(name, about, schema, EXTERNAL, idempotent, 60.0)


_HTTP = (
    Method(
        "get",
        "Reads what is at a path; gives its status, headers and body.",
        _schema({"path": _WHERE}, {"query": _QUERY}),
        READ,
        True,
        60.0,
    ),
    _sends("post", "Sends a body to a path by POST.", False),
    _sends("put", "Puts a body at a path by PUT.", True),
    _sends("patch", "Changes what is at a path by PATCH.", False),
    _sends("delete", "Deletes what is at a path by DELETE.", True),
)

_SQL = _said(_STRING, "One statement, with places for its parameters.")
_PARAMS = _said(
    {"type": ["array", "object"]},
    "Values for the places: a list for `?` (SQLite) or `$1` (PostgreSQL), an object for `:name` or `%(name)s`.",
)

_SQL_QUERY = Method(
    "query",
    "Reads rows by a statement that cannot change anything; gives a list of objects.",
    _schema({"sql": _SQL}, {"params": _PARAMS}),
    READ,
    True,
    30.0,
)
_SQL_TABLES = Method("tables", "Lists the names of the tables and views.", _schema({}), READ, True, 30.0)


def _sql(settings: Settings) -> tuple[Method, ...]:
    if settings.get("write") is not True:
        return (_SQL_QUERY, _SQL_TABLES)
    address = settings.get("address")
    is_file = isinstance(address, str) and address[:7].lower() == "sqlite:"
    execute = Method(
        "execute",
        "Changes the database by one statement; gives how many rows it touched.",
        _schema({"sql": _SQL}, {"params": _PARAMS}),
        WRITE if is_file else EXTERNAL,
        False,
        30.0,
    )
    return (_SQL_QUERY, execute, _SQL_TABLES)


_KEY = _said(_STRING, "The key.")
_ID = _said(_STRING, "The document's id.")

_KEY_VALUE = (
    Method("get", "Gives the value of a key, or null.", _schema({"key": _KEY}), READ, True, 30.0),
    Method(
        "set",
        "Stores a value under a key, in place of the one before.",
        _schema({"key": _KEY, "value": _said({}, "Any JSON value.")}),
        WRITE,
        True,
        30.0,
    ),
    Method("delete", "Forgets a key.", _schema({"key": _KEY}), WRITE, True, 30.0),
    Method(
        "keys",
        "Lists the keys in order.",
        _schema({}, {"prefix": _said(_STRING, "What the keys begin with.")}),
        READ,
        True,
        30.0,
    ),
)

_DOCUMENTS = (
    Method(
        "add",
        "Stores a document; one with the same id is replaced.",
        _schema(
            {"text": _said(_STRING, "The document.")},
            {
                "id": _said(_STRING, "Its id; a new one is made where it is left out."),
                "meta": _said({"type": "object"}, "What else is to be known of it."),
            },
        ),
        WRITE,
        False,
        30.0,
    ),
    Method("get", "Gives a document, or null.", _schema({"id": _ID}), READ, True, 30.0),
    Method(
        "search",
        "Finds the documents that hold words of the query, the best first.",
        _schema(
            {"query": _said(_STRING, "Words to look for.")},
            {
                "limit": _said(
                    {**_WHOLE, "maximum": 100}, "How many at most, 10 where it is left out, no more than 100."
                )
            },
        ),
        READ,
        True,
        30.0,
    ),
    Method("delete", "Removes a document.", _schema({"id": _ID}), WRITE, True, 30.0),
)

PROVIDERS: dict[str, Provider] = {
    p.name: p
    for p in (
        Provider(
            "Workspace",
            "tool",
            "The files below one folder.",
            (
                Setting("folder", "String", "The folder, relative to that of the `.halo` file.", True, True),
                Setting("write", "Boolean", "Whether files may be changed.", default=False),
            ),
            _workspace,
        ),
        Provider(
            "Bash",
            "tool",
            "Commands, run by bash. An agent that has it can do what its user can.",
            (
                Setting(
                    "cwd",
                    "String",
                    "The folder that commands run in, relative to that of the `.halo` file.",
                    default=".",
                ),
                Setting("timeout", "Duration", "How long a command may take.", default=60.0),
                Setting("env", "Env", "The variables that commands get, as `Env.NAME`.", default=()),
            ),
            lambda _: _BASH,
        ),
        Provider(
            "Slack",
            "tool",
            "A Slack workspace, by its Web API.",
            (
                Setting("token", "String", "The bot's token, as `Env.NAME`.", True, True, True),
                Setting("channel", "String", "The channel where none is named."),
            ),
            lambda _: _SLACK,
        ),
        Provider(
            "Http",
            "tool",
            "An HTTP service at one address.",
            (
                Setting("address", "String", "Where the service is, such as `https://api.example.com/v1`.", True, True),
                Setting(
                    "headers", "Object", "Headers that every request carries; a value may be `Env.NAME`.", secret=True
                ),
                Setting("allow", "List", "Hosts besides the address's own that a redirect may lead to.", default=()),
                Setting("private", "Boolean", "Whether addresses that are not public may be reached.", default=False),
            ),
            lambda _: _HTTP,
        ),
        Provider(
            "Sql",
            "tool",
            "A database: SQLite or PostgreSQL.",
            (
                Setting(
                    "address",
                    "String",
                    "`sqlite:///file.db`, relative to the `.halo` file, or `postgresql://…`; best as `Env.NAME`.",
                    True,
                    True,
                ),
                Setting("write", "Boolean", "Whether the database may be changed.", default=False),
            ),
            _sql,
            cases=(("for an SQLite file whose address the program holds", {"address": "sqlite:///file.db"}),),
        ),
        Provider(
            "Mcp",
            "tool",
            "The tools of an MCP server.",
            (
                Setting("command", "String", "The server's command, or its name in `.mcp.json`.", positional=True),
                Setting("arguments", "String", "The command's arguments.", positional=True, rest=True),
                Setting("url", "String", "The server's address, where it has no command."),
                Setting("headers", "Object", "Headers that are sent to the address.", secret=True),
                Setting("env", "Env", "The variables that the server gets, as `Env.NAME`.", default=()),
                Setting("timeout", "Duration", "How long its start, and each call, may take.", default=60.0),
            ),
            lambda _: None,
        ),
        Provider(
            "KeyValue",
            "store",
            "Values by key, kept in a file.",
            (Setting("file", "String", "The file, relative to the folder of the `.halo` file.", True, True),),
            lambda _: _KEY_VALUE,
        ),
        Provider(
            "Documents",
            "store",
            "Texts with full-text search, kept in a file.",
            (Setting("file", "String", "The file, relative to the folder of the `.halo` file.", True, True),),
            lambda _: _DOCUMENTS,
        ),
    )
}
