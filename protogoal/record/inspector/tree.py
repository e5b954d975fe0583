"""Pieces of the page as plain lists, [tag, attributes, children], that page.js puts into place.

It changes what is there instead of replacing it, so a page that follows a run every three seconds keeps the focus of the
keyboard, a click that is under way, and the frame of a moving picture; Dash would make all anew. Text is data: it enters
the page as text. Called by the parts of the page.
"""

from __future__ import annotations

from typing import Any

Node = list[Any]


def h(tag: str, *children: Any, **attributes: Any) -> Node:
    """An element: h("p", "some ", h("b", "text"), class_="why", data_goal=3, key="3").

    Lists of children are taken apart, None is left out; `key` tells which element is which when their order changes.
    """
    named = {name.rstrip("_").replace("_", "-"): str(value) for name, value in attributes.items() if value is not None}
    return [tag, named, _flat(children)]


def _flat(children: Any) -> list[Any]:
    flat: list[Any] = []
    for child in children:
        if child is None:
            continue
        if isinstance(child, str) or is_node(child):
            flat.append(child)
        elif isinstance(child, (list, tuple)):
            flat.extend(_flat(child))
        else:
            flat.append(str(child))
    return flat


def is_node(value: Any) -> bool:
    """Whether a list is an element rather than a list of elements."""
    return isinstance(value, list) and len(value) == 3 and isinstance(value[0], str) and isinstance(value[1], dict)


def goal_button(name: str, run: int, goal: int) -> Node:
    """A goal's name that opens it."""
    return h("button", name, class_="goal", type="button", data_goal=goal, data_run=run)


def trouble(label: str, error: ValueError) -> Node:
    """A run that cannot be read: said in its place, the others stay."""
    return h("div", h("strong", label), f" {error}", class_="trouble", role="alert", key=f"trouble {label}")


def nothing(text: str) -> Node:
    """A quiet line where there is nothing to show."""
    return h("p", text, class_="empty")
