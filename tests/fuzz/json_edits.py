"""Hypothesis strategies: any JSON, and valid JSON with some edits."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import strategies as st

LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.integers(-(2**70), 2**70),
    st.sampled_from([0.0, -0.0, 1e-320, 1e300, -1e300, 10**400, 0.5, float("nan"), float("inf")]),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["gaussian", "laplace", "product", "box", "ball", "scale", "mechanism", "\ud800", ""]),
)

ANY = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)


def _places(value: Any, found: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Return all (container, key) of a JSON value."""
    keys: Any = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        found.append((value, key))
        _places(value[key], found)
    return found


def _near(draw: Any, value: Any) -> Any:
    """Return another value of the same type, for leaves."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + draw(st.integers(-2, 2))
    if isinstance(value, float):
        return value * draw(st.sampled_from([0.5, 1.0001, 2.0, -1.0])) + draw(st.sampled_from([0.0, 1.0]))
    if isinstance(value, str):
        return draw(st.text(max_size=8)) if draw(st.booleans()) else value[::-1]
    return draw(ANY)


@st.composite
def edited(draw: Any, valid: Any, most: int = 3) -> Any:
    """Draw one of the `valid` values with up to `most` edits."""
    value = {"": copy.deepcopy(draw(st.sampled_from(valid)))}
    for _ in range(draw(st.integers(0, most))):
        places = _places(value, [])
        container, key = places[draw(st.integers(0, len(places) - 1))]
        edit = draw(st.sampled_from(["replace", "near", "near", "remove", "double", "rename", "borrow"]))
        if edit == "near":
            container[key] = _near(draw, container[key])
        elif edit == "replace":
            container[key] = draw(ANY)
        elif edit == "borrow":
            other, name = places[draw(st.integers(0, len(places) - 1))]
            container[key] = copy.deepcopy(other[name]) if name in other or isinstance(other, list) else None
        elif isinstance(container, list) and edit == "remove":
            del container[key]
        elif isinstance(container, list):
            container.append(copy.deepcopy(container[key]))
        elif edit != "double" and key:
            moved = container.pop(key)
            if edit == "rename":
                container[draw(st.text(max_size=8))] = moved
    return value.get("")
