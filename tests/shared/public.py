"""All public names: those on top and those of the public packages."""

import inspect

import unskew as us


def public_names():
    """Return everything public by its dotted name, `evaluate` or `stats.kendall`."""
    names = {}
    for name in us.__all__:
        thing = getattr(us, name)
        if inspect.ismodule(thing):
            names |= {f"{name}.{inner}": getattr(thing, inner) for inner in thing.__all__}
        else:
            names[name] = thing
    return {name: thing for name, thing in names.items() if not inspect.ismodule(thing)}
