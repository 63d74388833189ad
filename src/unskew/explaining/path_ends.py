"""The two ends of a path: ours, a library, or a printed value that is explained first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from unskew.conventions.collection import Library, library
from unskew.conventions.laying import Laid
from unskew.conventions.values import Values
from unskew.errors import SettingError
from unskew.evaluation.compat import choose_metric
from unskew.explaining.asked import OURS, Quantity, Target
from unskew.explaining.printed import Printed
from unskew.explaining.search import search
from unskew.explaining.waterfall import Options, Waterfall, options_of, waterfall
from unskew.explaining.wording import rank_of, simplest, title_of


def path_between(
    laid: Laid, metric: object, between: Sequence[object], libraries: Mapping[str, Library]
) -> Waterfall:
    """Return the path from one end to the other, for one metric of one system."""
    if len(between) != 2 or isinstance(between, str):
        raise SettingError(
            f"between must name two ends, such as ('ours', 'recbole'); got {between!r}"
        )
    if not isinstance(metric, str):
        raise SettingError(f"with between=…, values is the name of a metric; got {metric!r}")
    if len(laid.systems) != 1:
        raise SettingError(
            f"a path needs the lists of one system; there are {', '.join(laid.systems)}"
        )
    system = next(iter(laid.systems))
    quantity = Quantity.of(metric, list(libraries.values()))
    ends = [_end(one, laid, system, quantity, libraries) for one in between]
    return waterfall(Values(laid, system), metric, ends[0], ends[1], laid.notes)


def _end(
    given: object, laid: Laid, system: str, quantity: Quantity, libraries: Mapping[str, Library]
) -> tuple[str, Options]:
    """Read an end: its title, and the options that give its number."""
    if isinstance(given, str) and given.lower() in (OURS, "unskew"):
        return "unskew's defaults", options_of(quantity.row(), quantity.k)
    if isinstance(given, str) and not _is_number(given):
        source = library(given).newest
        row, k = choose_metric(source, quantity.label)
        title = f"{source.name} {', '.join(source.versions)} ({row.label(k, full=True)})"
        return title, options_of(row, k)
    target = Target(system, quantity, Printed.of(given))
    result = search(laid, (target,), libraries)
    if not result.fitting:
        raise SettingError(
            f"no convention that was tried gives {target}: explain that value alone to see what "
            "comes near"
        )
    first = simplest(min(result.fitting, key=rank_of))
    title = f"{target.printed.text}, taken as {title_of(first, (target,), libraries)}"
    return title, options_of(first.row(0), first.cutoff(quantity.k))


def _is_number(text: str) -> bool:
    try:
        Printed.of(text)
    except SettingError:
        return False
    return True
