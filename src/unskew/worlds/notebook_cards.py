"""What notebooks show of a world: a card of facts."""

from __future__ import annotations

from typing import Any

from unskew.report.notebook_view import card


def of_world(world: Any) -> str:
    """Return the card of a world; nothing of it is drawn for that."""
    facts = [
        ("users", len(world.users)),
        ("items", len(world.items)),
        ("expected ratings", world.expected),
        ("scale", f"{world.scale[0]:g} to {world.scale[1]:g}"),
        ("liked", f"{world.liked:g} and more"),
        ("seed", world.seed),
        ("parts", ", ".join(type(part).__name__ for part in world.parts)),
    ]
    hint = ".ratings are what is observed; what every user truly likes is known."
    return card("World", world.name, facts, hint=hint)
