"""Which provider speaks which wire, at which address, with which key (tools.md §4).

Owns the table and the rule that a project can never have a key of the user's sent to an address of the project's own.
Pure: looks only at the variables and tables that it is given. Read `client.py` next.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from ..boundary.host import ConfigError, Environment
from ..language.diagnostics import did_you_mean
from ..language.record import Record, replace

OPENAI, ANTHROPIC, EMBEDDED, ADAPTER, OWN = "openai", "anthropic", "embedded", "adapter", "own"


class Known(Record):
    """A provider of the table. `url` is None where only the variable `address` says it. `tokens_field` is chosen by
    provider and never guessed from an error: OpenAI's own service wants `max_completion_tokens`, every other server
    is known to honour `max_tokens`. `stream_usage`: whether `stream_options` may be sent (Mistral refuses it, and
    reports usage unasked)."""

    wire: str
    url: str | None
    address: str
    key: str
    key_optional: bool = False
    key_header: str = "authorization"
    tokens_field: str = "max_tokens"
    stream_usage: bool = True


def _known(name: str, url: str | None, **more: object) -> Known:
    base = name.upper()
    return Known(**{"wire": OPENAI, "url": url, "address": f"{base}_BASE_URL", "key": f"{base}_API_KEY", **more})  # type: ignore[arg-type]


PROVIDERS: dict[str, Known] = {
    "openai": _known("openai", "https://api.openai.com/v1", tokens_field="max_completion_tokens"),
    "azure": _known(
        "azure_openai",
        None,
        address="AZURE_OPENAI_ENDPOINT",
        key_header="api-key",
        tokens_field="max_completion_tokens",
    ),
    "groq": _known("groq", "https://api.groq.com/openai/v1"),
    "mistral": _known("mistral", "https://api.mistral.ai/v1", stream_usage=False),
    "openrouter": _known("openrouter", "https://openrouter.ai/api/v1"),
    "deepseek": _known("deepseek", "https://api.deepseek.com/v1"),
    "xai": _known("xai", "https://api.x.ai/v1"),
    "together": _known("together", "https://api.together.xyz/v1"),
    "fireworks": _known("fireworks", "https://api.fireworks.ai/inference/v1"),
    "ollama": _known("ollama", "http://127.0.0.1:11434/v1", key_optional=True),
    "local": _known("local", None, address="HALO_LOCAL_URL", key="HALO_LOCAL_API_KEY", key_optional=True),
    "anthropic": _known("anthropic", "https://api.anthropic.com", wire=ANTHROPIC, key_header="x-api-key"),
}

TABLE_KEYS = ("url", "wire", "key", "model", "tokens_field")
"""What may stand in a `[models.NAME]` of halo.toml."""


class Endpoint(Record):
    """Where the requests of one model go. `model` is `provider/model` as the program names it, `name` what the server
    calls it. `headers` hold the key; `key` is kept apart so that it can be masked wherever text of the server's is
    shown. `key_name` is the variable that the key came from."""

    model: str
    provider: str
    name: str
    wire: str
    url: str = ""
    headers: Mapping[str, str] = {}
    key: str = ""
    key_name: str = ""
    tokens_field: str = "max_tokens"
    stream_usage: bool = True
    proxy: str | None = None

    def __repr__(self) -> str:
        return f"Endpoint({self.model!r}, {self.wire!r}, {self.url!r}, key={'…' if self.key else None})"


def endpoint(model: str, environment: Environment, configured: Mapping[str, Mapping[str, str]]) -> Endpoint:
    """The endpoint of `provider/model`.

    `configured` are the `[models.NAME]` tables of halo.toml: `url`, `wire` (`openai` by default, or `anthropic`),
    `key` (the name of the variable that holds the key), `model` (the server's name for it, in place of what stands
    after the slash) and `tokens_field` (`max_tokens` by default, or `max_completion_tokens`).

    Raises `ConfigError` naming the variable that is missing, or saying why a key is not sent.
    """
    provider, _, name = model.partition("/")
    if not provider or not name:
        raise ConfigError(f"the model `{model}` is not named as `provider/model`")
    if provider == EMBEDDED:
        return Endpoint(model, provider, name, EMBEDDED)
    table = configured.get(provider)
    known = PROVIDERS.get(provider)
    if table is not None:
        return _from_table(model, provider, name, table, known, environment)
    if known is None:
        return Endpoint(model, provider, name, ADAPTER)
    url = environment.get(known.address)
    projects = url is not None and environment.is_projects(known.address)
    where = f"`{known.address}` in the project's .env" if projects else ""
    if url is None:
        url = known.url
    if url is None:
        raise ConfigError(f"`{model}` needs the variable {known.address}: the address of the server")
    url = _checked(url, known.address)
    key = _key(known.key, known.key_optional, environment, where, model)
    return _made(Endpoint(model, provider, name, known.wire, url), known, key, environment)


def address_variable(provider: str) -> str:
    """The variable that wins over the `url` of a `[models.NAME]` (cli.md): `HALO_MINE_URL` for `mine`."""
    return f"HALO_{''.join(c if c.isascii() and c.isalnum() else '_' for c in provider).upper()}_URL"


def key_names(configured: Mapping[str, Mapping[str, str]]) -> list[str]:
    """The variables in which the keys of all providers are looked for."""
    named = [str(table["key"]) for table in configured.values() if table.get("key")]
    return list(dict.fromkeys([*named, *(known.key for known in PROVIDERS.values() if known.key)]))


def unknown_provider(provider: str, configured: Mapping[str, Mapping[str, str]]) -> str:
    """What to say of a provider that no wire of ours speaks, for `adapter.py`: the nearest name, if one is near."""
    near = did_you_mean(provider, [*PROVIDERS, *configured, EMBEDDED])
    return f"; {near}" if near else ""


def _from_table(
    model: str, provider: str, name: str, table: Mapping[str, str], known: Known | None, environment: Environment
) -> Endpoint:
    place = f"[models.{provider}] of halo.toml"
    for field, value in table.items():
        if field not in TABLE_KEYS:
            near = did_you_mean(field, TABLE_KEYS)
            raise ConfigError(f"{place}: there is no setting `{field}`{'; ' + near if near else ''}")
        if not isinstance(value, str) or not value:
            raise ConfigError(f"{place}: `{field}` must be a text")
    if known is None:
        known = Known(OPENAI, None, "", "", key_optional=True)
    wire = table.get("wire", known.wire)
    if wire not in (OPENAI, ANTHROPIC):
        raise ConfigError(f"{place}: `wire` is `openai` or `anthropic`, not `{wire}`")
    if wire != known.wire:
        known = replace(known, wire=wire, key_header="x-api-key" if wire == ANTHROPIC else "authorization")
    tokens = table.get("tokens_field", known.tokens_field)
    if tokens not in ("max_tokens", "max_completion_tokens"):
        raise ConfigError(f"{place}: `tokens_field` is `max_tokens` or `max_completion_tokens`, not `{tokens}`")
    known = replace(known, tokens_field=tokens)
    url = table.get("url")
    where = f"`url` in {place}" if url is not None else ""
    variable = address_variable(provider)
    if (address := environment.get(variable)) is not None:
        url, place = address, variable
        where = f"`{variable}` in the project's .env" if environment.is_projects(variable) else ""
    if url is None and known.url is None:
        raise ConfigError(f"{place}: `url` is missing: the address of the server")
    checked = _checked(url if url is not None else str(known.url), place)
    key_name = table.get("key", known.key)
    optional = known.key_optional and "key" not in table
    key = _key(key_name, optional, environment, where, model) if key_name else ""
    return _made(
        Endpoint(model, provider, table.get("model", name), wire, checked),
        replace(known, key=key_name),
        key,
        environment,
    )


def _made(found: Endpoint, known: Known, key: str, environment: Environment) -> Endpoint:
    url = found.url
    if found.provider == "azure" and "/openai" not in urlsplit(url).path:
        url += "/openai/v1"
    if known.wire == ANTHROPIC:
        url = url.removesuffix("/v1") + "/v1/messages"
        headers = {"anthropic-version": "2023-06-01"}
    else:
        url += "/chat/completions"
        headers = {}
    if key:
        headers[known.key_header] = f"Bearer {key}" if known.key_header == "authorization" else key
    return replace(
        found,
        url=url,
        headers=headers,
        key=key,
        key_name=known.key,
        tokens_field=known.tokens_field,
        stream_usage=known.stream_usage,
        proxy=_proxy(url, environment.process),
    )


def _key(name: str, optional: bool, environment: Environment, projects: str, model: str) -> str:
    """The key in the variable `name`. Where the address is the project's own (`projects` says where it stands), only
    a key that stands in the project's .env goes there: else a file that somebody cloned could collect the user's
    keys."""
    key = (environment.project if projects else environment).get(name)
    if not key:
        if projects and environment.process.get(name):
            raise ConfigError(
                f"`{model}`: the address of the model server is {projects}, and {name} is from your own environment. "
                f"A key of yours is never sent to an address that a project names. Put {name} into the project's "
                f".env if it belongs to that server, or set the address in your own environment."
            )
        if optional:
            return ""
        raise ConfigError(f"`{model}` needs a key: set the variable {name}{' in the .env' if projects else ''}")
    key = key.strip()
    if not key.isascii() or not key.isprintable() or not key:
        raise ConfigError(f"the variable {name} holds something that can be no key: a blank, a line break or the like")
    return key


def _checked(url: str, place: str) -> str:
    url = url.strip().rstrip("/")
    try:
        parts = urlsplit(url)
        host, _port = parts.hostname, parts.port
    except ValueError:
        host = None
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not host or not url.isprintable() or " " in url:
        raise ConfigError(f"{place}: the address of a model server looks like https://host/v1")
    if parts.username is not None or parts.password is not None:
        raise ConfigError(f"{place}: an address holds no user and password; a key has a variable of its own")
    if parts.query or parts.fragment:
        raise ConfigError(f"{place}: an address of a model server has no `?` and no `#`")
    return url


_LOOPBACK = ("localhost", "127.0.0.1", "::1")


def _proxy(url: str, process: Mapping[str, str]) -> str | None:
    """The proxy for an address, from the user's own environment (never a project's), never for loopback."""
    parts = urlsplit(url)
    if parts.hostname in _LOOPBACK or str(parts.hostname).startswith("127."):
        return None
    names = (f"{parts.scheme}_proxy", "all_proxy")
    name = next((v for n in names for v in (n, n.upper()) if process.get(v)), None)
    if name is None:
        return None
    from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]

    excepted = process.get("no_proxy") or process.get("NO_PROXY") or ""
    if proxy_bypass_environment(parts.hostname, {"no": excepted}):
        return None
    proxy = process[name] if "://" in process[name] else f"http://{process[name]}"
    if urlsplit(proxy).scheme != "http":
        raise ConfigError(f"{name}: only proxies with an http:// address can be used for model servers")
    return proxy
