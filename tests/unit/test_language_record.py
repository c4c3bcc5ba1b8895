"""Records: what is made, copied and compared, and what is refused."""

from __future__ import annotations

import pytest

from halo_lang.language.record import Record, fields, replace


class Point(Record):
    x: int
    y: int = 2


class Named(Point):
    name: str = "here"


def test_the_first_record_of_a_kind_is_made_as_any_other() -> None:
    class Fresh(Record):
        a: int
        b: tuple[int, ...] = ()

    first, second = Fresh(1, b=(2,)), Fresh(1, (2,))
    assert first == second
    assert hash(first) == hash(second)
    assert repr(first) == "Fresh(a=1, b=(2,))"


def test_what_is_missing_or_unknown_is_refused_the_first_time_too() -> None:
    class Fresh(Record):
        a: int

    with pytest.raises(TypeError, match="missing"):
        Fresh()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected"):
        Fresh(a=1, b=2)  # type: ignore[call-arg]
    assert Fresh(1).a == 1


def test_a_record_that_inherits_has_all_fields_and_its_own_copies() -> None:
    assert fields(Named(1)) == ("x", "y", "name")
    assert replace(Point(1), y=5) == Point(1, 5)
    changed = replace(Named(1), name="there")
    assert type(changed) is Named
    assert changed == Named(1, 2, "there")
    assert changed != Point(1, 2)


def test_replacing_leaves_the_record_and_refuses_what_it_has_not() -> None:
    point = Point(1)
    assert replace(point) == point
    assert replace(point) is not point
    assert replace(point, x=3) == Point(3)
    assert point == Point(1)
    with pytest.raises(TypeError, match="Point has no field 'z'"):
        replace(point, z=1)


def test_what_is_kept_beside_the_fields_is_no_part_of_the_record() -> None:
    class Kept(Record):
        a: int
        _double: int | None = None
        b: int = 2

    kept = Kept(1, 3)
    assert kept._double is None
    kept._double = 2  # type: ignore[misc]
    assert fields(kept) == ("a", "b")
    assert kept == Kept(1, 3)
    assert hash(kept) == hash(Kept(1, 3))
    assert repr(kept).endswith("Kept(a=1, b=3)")
    assert replace(kept, a=2)._double is None
