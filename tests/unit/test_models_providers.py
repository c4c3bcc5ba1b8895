"""Addresses, keys and the rule that keeps a user's keys from a project's addresses (tools.md §4)."""

from __future__ import annotations

import pytest

from halo_lang.boundary.host import ConfigError, Environment
from halo_lang.models.client import ModelClient
from halo_lang.models.providers import PROVIDERS, Endpoint, endpoint

KEY = "sk-of-the-user"
Vars = dict[str, str]
NO_ADDRESSES = ["ftp://h/v1", "h/v1", "https://", "https://h/v1?k=1", "https://h/#x", "http://h:x/", "http://h /v1"]


def found(
    model: str, process: dict[str, str], project: dict[str, str] | None = None, **tables: dict[str, str]
) -> Endpoint:
    return endpoint(model, Environment(process, project or {}), tables)


def refusal(
    model: str, process: dict[str, str], project: dict[str, str] | None = None, **tables: dict[str, str]
) -> str:
    with pytest.raises(ConfigError) as caught:
        found(model, process, project, **tables)
    assert KEY not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("provider", [p for p, k in PROVIDERS.items() if not k.key_optional])
def test_a_missing_key_is_named(provider: str) -> None:
    known = PROVIDERS[provider]
    assert known.key in refusal(f"{provider}/m", {known.address: "https://models.example"})


@pytest.mark.parametrize(
    ("provider", "url"),
    [
        ("openai", "https://api.openai.com/v1/chat/completions"),
        ("anthropic", "https://api.anthropic.com/v1/messages"),
        ("groq", "https://api.groq.com/openai/v1/chat/completions"),
        ("ollama", "http://127.0.0.1:11434/v1/chat/completions"),
    ],
)
def test_default_addresses(provider: str, url: str) -> None:
    there = found(f"{provider}/m", {PROVIDERS[provider].key: KEY})
    assert there.url == url
    assert there.key == KEY
    assert KEY not in repr(there)


@pytest.mark.parametrize("provider", ["azure", "local"])
def test_a_missing_address_is_named(provider: str) -> None:
    known = PROVIDERS[provider]
    assert known.address in refusal(f"{provider}/m", {known.key: KEY})


@pytest.mark.parametrize(
    ("model", "variable", "given", "url"),
    [
        ("openai/m", "OPENAI_BASE_URL", "https://h/v1/", "https://h/v1/chat/completions"),
        ("anthropic/m", "ANTHROPIC_BASE_URL", "https://h", "https://h/v1/messages"),
        ("anthropic/m", "ANTHROPIC_BASE_URL", "https://h/v1", "https://h/v1/messages"),
        ("azure/m", "AZURE_OPENAI_ENDPOINT", "https://r.example/", "https://r.example/openai/v1/chat/completions"),
        (
            "azure/m",
            "AZURE_OPENAI_ENDPOINT",
            "https://r.example/openai/v1",
            "https://r.example/openai/v1/chat/completions",
        ),
    ],
)
def test_given_addresses(model: str, variable: str, given: str, url: str) -> None:
    known = PROVIDERS[model.partition("/")[0]]
    assert found(model, {variable: given, known.key: KEY}).url == url


def test_the_name_of_a_model_may_hold_slashes() -> None:
    assert found("openrouter/meta-llama/llama-3.3", {"OPENROUTER_API_KEY": KEY}).name == "meta-llama/llama-3.3"


def test_azure_takes_its_key_in_a_header_of_its_own() -> None:
    there = found("azure/m", {"AZURE_OPENAI_ENDPOINT": "https://r.example", "AZURE_OPENAI_API_KEY": KEY})
    assert there.headers == {"api-key": KEY}
    assert there.tokens_field == "max_completion_tokens"


@pytest.mark.parametrize("model", ["openai", "/m", "openai/", ""])
def test_a_model_without_provider_or_name(model: str) -> None:
    assert "provider/model" in refusal(model, {"OPENAI_API_KEY": KEY})


@pytest.mark.parametrize(
    "url", ["ftp://h/v1", "h/v1", "https://", "https://h/v1?k=1", "https://h/#x", "http://h:x/", "http://h /v1"]
)
def test_addresses_that_are_none(url: str) -> None:
    assert "OPENAI_BASE_URL" in refusal("openai/m", {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": KEY})


def test_an_address_holds_no_password() -> None:
    said = refusal("openai/m", {"OPENAI_BASE_URL": "https://me:hunter2@h/v1", "OPENAI_API_KEY": KEY})
    assert "hunter2" not in said


@pytest.mark.parametrize("key", ["a\nb", "a b\tc\r\nX-Evil: 1", "schlüssel"])
def test_a_key_that_can_be_none(key: str) -> None:
    said = refusal("openai/m", {"OPENAI_API_KEY": key})
    assert "OPENAI_API_KEY" in said
    assert key not in said


def test_a_key_loses_the_blanks_around_it() -> None:
    assert found("openai/m", {"OPENAI_API_KEY": f" {KEY}\n"}).key == KEY


# A project names an address.


def test_a_projects_address_gets_no_key_of_the_users() -> None:
    said = refusal("openai/m", {"OPENAI_API_KEY": KEY}, {"OPENAI_BASE_URL": "https://evil.example/v1"})
    assert "OPENAI_API_KEY" in said
    assert "never sent" in said


def test_a_projects_address_gets_the_projects_key() -> None:
    project = {"OPENAI_BASE_URL": "https://ours.example/v1", "OPENAI_API_KEY": "of-the-project"}
    assert found("openai/m", {}, project).key == "of-the-project"
    assert found("openai/m", {"OPENAI_API_KEY": KEY}, project).key == "of-the-project"


def test_the_users_own_address_wins_and_gets_the_users_key() -> None:
    there = found(
        "openai/m",
        {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": "https://mine.example/v1"},
        {"OPENAI_BASE_URL": "https://evil.example/v1"},
    )
    assert there.url.startswith("https://mine.example/")
    assert there.key == KEY


def test_an_optional_key_of_the_users_is_not_sent_either() -> None:
    said = refusal("local/m", {"HALO_LOCAL_API_KEY": KEY}, {"HALO_LOCAL_URL": "https://evil.example/v1"})
    assert "HALO_LOCAL_API_KEY" in said
    assert found("local/m", {}, {"HALO_LOCAL_URL": "https://evil.example/v1"}).key == ""


def test_a_table_of_halo_toml() -> None:
    table = {"url": "http://127.0.0.1:8000/v1", "key": "OUR_KEY", "model": "llama-3"}
    there = found("ours/m", {}, {"OUR_KEY": "of-the-project"}, ours=table)
    assert there.url == "http://127.0.0.1:8000/v1/chat/completions"
    assert there.key == "of-the-project"
    assert there.name == "llama-3"
    assert there.tokens_field == "max_tokens"
    assert found("ours/m", {}, ours={"url": "http://h"}).key == ""


def test_a_table_that_names_a_key_of_the_users() -> None:
    table = {"url": "https://evil.example", "key": "OPENAI_API_KEY"}
    assert "never sent" in refusal("ours/m", {"OPENAI_API_KEY": KEY}, ours=table)
    assert "OPENAI_API_KEY" in refusal("ours/m", {}, ours=table)


def test_a_table_that_redirects_a_known_provider() -> None:
    assert "never sent" in refusal("openai/m", {"OPENAI_API_KEY": KEY}, openai={"url": "https://evil.example"})
    assert "never sent" in refusal("anthropic/m", {"ANTHROPIC_API_KEY": KEY}, anthropic={"url": "https://evil.example"})


def test_a_table_without_an_address_keeps_the_known_one() -> None:
    there = found("openai/fast", {"OPENAI_API_KEY": KEY}, openai={"model": "gpt-4o-mini"})
    assert there.url.startswith("https://api.openai.com/")
    assert there.name == "gpt-4o-mini"
    assert there.key == KEY


def test_a_table_of_anthropics_wire() -> None:
    there = found("ours/m", {}, {"K": "k-project"}, ours={"url": "https://h", "wire": "anthropic", "key": "K"})
    assert there.url == "https://h/v1/messages"
    assert there.headers["x-api-key"] == "k-project"


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({}, "`url` is missing"),
        ({"url": "x"}, "looks like"),
        ({"url": "https://h", "wire": "grpc"}, "`wire` is"),
        ({"url": "https://h", "kee": "K"}, "did you mean `key`"),
        ({"url": "https://h", "tokens_field": "n"}, "`tokens_field` is"),
        ({"url": 5}, "must be a text"),
    ],
)
def test_tables_that_are_wrong(table: dict[str, str], said: str) -> None:
    message = refusal("ours/m", {}, ours=table)
    assert said in message
    assert "[models.ours]" in message


def test_proxies_come_from_the_users_environment_alone() -> None:
    keys = {"OPENAI_API_KEY": KEY}
    assert found("openai/m", {**keys, "HTTPS_PROXY": "http://p:1"}).proxy == "http://p:1"
    assert found("openai/m", {**keys, "all_proxy": "p:1"}).proxy == "http://p:1"
    assert found("openai/m", {**keys, "https_proxy": "http://p:1", "NO_PROXY": ".openai.com"}).proxy is None
    assert found("openai/m", keys, {"HTTPS_PROXY": "http://evil:1"}).proxy is None
    assert found("ollama/m", {"HTTP_PROXY": "http://p:1"}).proxy is None
    assert "HTTPS_PROXY" in refusal("openai/m", {**keys, "HTTPS_PROXY": "socks5://p:1"})


def test_a_provider_that_nobody_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("halo_lang.models.adapter.find_spec", lambda name: None)
    client = ModelClient(Environment({}, {}))
    with pytest.raises(ConfigError, match=r"halo-lang\[providers\]"):
        client.prepare("google/gemini-2.5-flash")
    with pytest.raises(ConfigError, match="did you mean `openai`"):
        client.prepare("opnai/gpt-4o")
