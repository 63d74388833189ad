"""How many examples a property is tried on."""

from hypothesis import settings


def examples(number, **more):
    """Return settings that try so many examples; a third, where slow tests are left out."""
    few = number * settings.default.max_examples // 100
    return settings(max_examples=max(few, min(number, 10)), **more)
