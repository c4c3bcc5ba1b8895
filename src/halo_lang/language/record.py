"""Frozen, slotted records: what `dataclasses` gives, without what it costs to import.

Owns the one way in which Halo's plain data is declared. A subclass of `Record` lists its fields as annotations,
with defaults where it has them; it gets `__slots__`, an `__init__`, equality by value, a hash and a `repr`. A name with
an underscore before it is no field: it is None until somebody keeps there what the fields say in another form. Type
checkers take a record for a frozen dataclass, so assigning to a field is an error before anything runs; at run time
nothing guards it, which is what keeps making one cheap (docs/adr/0002). Read `source.py` next.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from inspect import Signature
    from typing import Any, TypeVar, dataclass_transform

    R = TypeVar("R", bound="Record")
else:

    def dataclass_transform(**_: object):
        return lambda cls: cls


@dataclass_transform(frozen_default=True)
class _RecordType(type):
    def __new__(meta, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> _RecordType:
        slots = tuple(namespace.get("__annotations__", ()))
        kept = tuple([f for f in slots if f[0] == "_"])
        own = tuple([f for f in slots if f not in kept]) if kept else slots
        defaults = {f: namespace.pop(f) for f in slots if f in namespace}
        namespace["__slots__"] = slots
        cls = super().__new__(meta, name, bases, namespace)
        inherited = next((b for b in bases if isinstance(b, _RecordType)), None)
        cls._fields = (inherited._fields if inherited else ()) + own
        cls._kept = (inherited._kept if inherited else ()) + kept
        cls._defaults = ({**inherited._defaults} if inherited else {}) | defaults
        cls._copied = None
        setattr(cls, "__match_args__", cls._fields)
        if cls._fields:
            cls.__init__ = _first_init(cls)  # type: ignore[misc]
        return cls

    @property
    def __signature__(cls) -> Signature:
        """What `inspect.signature` shows, made when somebody asks; instances do not have it."""
        from inspect import Parameter, Signature, get_annotations

        types = {f: t for c in reversed(cls.__mro__) for f, t in get_annotations(c).items()}
        kind, empty = Parameter.POSITIONAL_OR_KEYWORD, Parameter.empty
        return Signature(
            [Parameter(f, kind, default=cls._defaults.get(f, empty), annotation=types[f]) for f in cls._fields]
        )

    if TYPE_CHECKING:
        _fields: tuple[str, ...]
        _kept: tuple[str, ...]
        _defaults: dict[str, Any]
        _copied: Any


def _first_init(cls: _RecordType) -> Any:
    """Makes the real `__init__` when the first record is made: a command makes few of the kinds that it imports."""

    def __init__(self: Any, *args: Any, **named: Any) -> None:
        made = _make_init(cls)
        cls.__init__ = made  # type: ignore[misc]
        made(self, *args, **named)

    return __init__


def _make_init(cls: _RecordType) -> Any:
    params = ", ".join([f"{f}=_d[{f!r}]" if f in cls._defaults else f for f in cls._fields])
    body = "".join([f"    self.{f} = {f}\n" for f in cls._fields] + [f"    self.{f} = None\n" for f in cls._kept])
    made: dict[str, Any] = {"_d": cls._defaults}
    exec(f"def __init__(self, {params}):\n{body}", made)  # noqa: S102 (field names only)
    return made["__init__"]


def _make_copied(cls: _RecordType) -> Any:
    body = "".join(
        [f"    made.{f} = record.{f}\n" for f in cls._fields] + [f"    made.{f} = None\n" for f in cls._kept]
    )
    made: dict[str, Any] = {"_cls": cls, "_new": object.__new__}
    exec(f"def copied(record):\n    made = _new(_cls)\n{body}    return made", made)  # noqa: S102 (as above)
    return made["copied"]


class Record(metaclass=_RecordType):
    """The base of every plain, immutable piece of data."""

    def __eq__(self, other: object) -> bool:
        if self.__class__ is not other.__class__:
            return NotImplemented
        return all(getattr(self, f) == getattr(other, f) for f in type(self)._fields)

    def __hash__(self) -> int:
        return hash((self.__class__, *(getattr(self, f) for f in type(self)._fields)))

    def __repr__(self) -> str:
        shown = ", ".join(f"{f}={getattr(self, f)!r}" for f in type(self)._fields)
        return f"{self.__class__.__name__}({shown})"


def replace(record: R, **changes: Any) -> R:
    """The same record with some fields changed. Raises `TypeError` for a field that it has not."""
    cls = type(record)
    copied = cls._copied
    if copied is None:
        copied = cls._copied = _make_copied(cls)
    made: R = copied(record)
    for name, value in changes.items():
        if name not in cls._fields:
            raise TypeError(f"{cls.__name__} has no field {name!r}")
        setattr(made, name, value)
    return made


def fields(record: Record) -> tuple[str, ...]:
    """The names of a record's fields, in order."""
    return type(record)._fields
