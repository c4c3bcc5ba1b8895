"""Providers of other packages, found when a program names one (tools.md §1).

Owns the entry points `halo.providers`: each gives, under the provider's name, a class, a function or a list of
functions. Nothing is looked for while a program names Halo's own providers alone, which keeps every command quick.
Importing a package runs its code: that is the trust that installing it was. What cannot be used becomes a provider that
says why, so that the checker can point at it.
"""

from __future__ import annotations

from ..catalog.builtin import PROVIDERS
from ..catalog.describe import Provider

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from importlib.metadata import EntryPoint
    from typing import Any

    from ..models.own import OwnModel as OwnModel
    from ..providers.own.describing import Own as Own

GROUP = "halo.providers"
IMPORT_S = 10.0
"""How long importing a package may take."""

_found: dict[str, Own | None] = {}


class Installed(dict[str, Provider]):
    """Providers by name; one that is not there is looked for among the installed packages, when it is asked for."""

    def get(self, name: str, default: Any = None) -> Any:
        known = super().get(name)
        if known is None:
            own = installed_provider(name)
            if own is None:
                return default
            known = self[name] = own.provider
        return known


def with_installed(providers: Mapping[str, Provider] = PROVIDERS, own: Mapping[str, Own] | None = None) -> Installed:
    """These providers, those in `own`, and all that are installed."""
    made = Installed(providers)
    made.update((name, one.provider) for name, one in (own or {}).items())
    return made


def installed_provider(name: str) -> Own | None:
    """The provider of that name that an installed package brings, if one does. Never raises."""
    if name not in _found:
        _found[name] = _of_entries(name, _entry_points(name)) if name not in PROVIDERS else None
    return _found[name]


def all_installed() -> list[Own]:
    """All providers that installed packages bring, by name. One named like Halo's own is left out: it is never used."""
    names = sorted({entry.name for entry in _entry_points()} - PROVIDERS.keys())
    return [own for name in names if (own := installed_provider(name)) is not None]


def own_providers(given: Mapping[str, object] | Iterable[str]) -> dict[str, Own]:
    """Providers that somebody registers in code: by name a class, a function or a list of functions; None, or a name
    alone, for one of which nothing is known. Raises `ConfigError`."""
    from collections.abc import Mapping

    from ..providers.own.describing import described, named_alone

    entries = given.items() if isinstance(given, Mapping) else ((name, None) for name in given)
    return {name: named_alone(name) if one is None else described(name, one) for name, one in entries}


def own_model(provider: str, function: OwnModel) -> None:
    """Checks that a function can answer for the models of a provider. Raises `ConfigError`."""
    from ..boundary.host import ConfigError
    from ..models.own import refuse_provider

    refuse_provider(provider)
    if not callable(function):
        raise ConfigError(f"the model of `{provider}` must be a function, and is of type {type(function).__name__}")


def _entry_points(name: str | None = None) -> Iterable[EntryPoint]:
    """The entry points of our group, of one name or all. Separate, so that tests can stand in for what is installed."""
    from importlib.metadata import entry_points

    found = entry_points(group=GROUP)
    return found if name is None else found.select(name=name)


def _of_entries(name: str, found: Iterable[EntryPoint]) -> Own | None:
    by_package = {_package(entry): entry for entry in found}
    if not by_package:
        return None
    if len(by_package) > 1:
        packages = " and ".join(sorted(by_package))
        return _broken(name, packages, f"the packages {packages} both bring a provider `{name}`; remove one of them")
    ((package, entry),) = by_package.items()
    trouble, loaded = _loaded(entry)
    if trouble is None:
        from ..boundary.host import ConfigError
        from ..providers.own.describing import described

        try:
            return described(name, loaded, package)
        except ConfigError as error:
            trouble = str(error)
    return _broken(name, package, f"`{name}` of the package {package} cannot be used: {trouble}")


def _package(entry: EntryPoint) -> str:
    return "of no known name" if entry.dist is None else f"{entry.dist.name} {entry.dist.version}"


def _loaded(entry: EntryPoint) -> tuple[str | None, object]:
    """What an entry point names, or why it cannot be had. It is imported in a thread, so that one that hangs does not
    hang everything; what it prints is kept from standard output, which may be a document."""
    from contextlib import redirect_stdout
    from sys import stderr
    from threading import Thread

    from ..providers.own.calling import said

    outcome: list[tuple[str | None, object]] = []

    def load() -> None:
        try:
            outcome.append((None, entry.load()))
        except BaseException as error:
            outcome.append((f"importing it failed: {said(error)}", None))

    loading = Thread(target=load, name=f"importing {entry.name}", daemon=True)
    with redirect_stdout(stderr):
        loading.start()
        loading.join(IMPORT_S)
    return outcome[0] if outcome else (f"importing it took longer than {IMPORT_S:g} s", None)


def _broken(name: str, package: str, why: str) -> Own:
    from ..boundary.host import ConfigError
    from ..providers.own.describing import Own

    def start(_: Mapping[str, Any]) -> Any:
        raise ConfigError(why)

    nothing: Callable[[Any], None] = lambda _: None  # noqa: E731
    return Own(Provider(name, "tool", "", (), nothing, open=True, broken=why, origin=package), start)
