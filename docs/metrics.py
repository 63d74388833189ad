"""Write docs/metrics.md from the docstrings: python docs/metrics.py [--check]."""

import inspect
import sys
from pathlib import Path

from unskew.metrics.definition import OWN_FORMULA
from unskew.metrics.names import REGISTRY, aliases, parse

HEAD = """# Metrics

Written from the docstrings by `docs/metrics.py`; do not edit.

A name is `[anti-][condensed-]Name[(key=value,…)][@k]`. Without `@k` the whole list counts;
`metric@k` is the metric of the list cut at k. `anti-` exchanges liked and disliked, gain and loss;
`condensed-` drops unjudged items first and closes up. Names are read in any case, and trec_eval's
own names (`map`, `ndcg_cut_10`, `P_5`, `recip_rank`, `set_P` …) are understood.

In the formulas: k is the cutoff, L the list cut at k, liked(L) the liked items in it, R and N the
user's liked and disliked judgments. An undefined value is NaN; in means it counts as 0 unless
`undefined="skip"`.
"""
TITLES = {"judged": "Of judged items", "items": "Of the recommended items", "run": "Of a whole run"}


def page() -> str:
    """Return the page."""
    parts = [HEAD]
    for kind, title in TITLES.items():
        parts.append(f"## {title}\n")
        for name, entry in REGISTRY.items():
            if entry.of == kind:
                parts.append(section(name))
    return "\n".join([*parts, known()])


KNOWN = {
    "chance": "chance in closed form",
    "at_rank": "from one rank",
    "weighted": "IPS estimate",
    "linear": "sensitivity",
    "bounds": "bounds",
    "strata": "splits over strata",
}


def known() -> str:
    """Return a table of what other features know of each metric."""
    lines = [
        "## What is known of each metric\n",
        "Where a mark is missing, chance is simulated and other features refuse the metric, with",
        "the reason. *From one rank* serves sampled metrics and `OneRelevant(exact=True)`.\n",
        f"| metric | {' | '.join(KNOWN.values())} |",
        f"|---|{'---|' * len(KNOWN)}",
    ]
    for name, entry in REGISTRY.items():
        fields = (getattr(entry, field) for field in KNOWN)
        refused = [one is None or (isinstance(one, str) and one != OWN_FORMULA) for one in fields]
        marks = ["" if one else "✓" for one in refused]
        lines.append(f"| {name} | {' | '.join(marks)} |")
    return "\n".join([*lines, ""])


def section(name: str) -> str:
    """Return a metric's section."""
    entry = REGISTRY[name]
    first, _, rest = inspect.cleandoc(entry.compute.__doc__ or "").partition("\n\n")
    lines = [f"### {name}\n", first, ""]
    labels = ("Formula", "Undefined", "Short list", "Range", "Reference")
    for line in rest.splitlines():
        lines.append(
            f"- **{line}"
            if line.startswith(tuple(f"{label}:" for label in labels))
            else f"  {line}"
        )
        for label in labels:
            lines[-1] = lines[-1].replace(f"- **{label}:", f"- **{label}:**")
    settings = [
        f"`{key}` ({', '.join(param.words)}; default {param.default}"
        f"{f', condensed {entry.condensed[key]}' if key in entry.condensed else ''})" if param.words
        else f"`{key}` (number; default {param.default})"
        for key, param in entry.params.items()
    ]  # fmt: skip
    also = [f"`{alias}`" for alias, target in aliases().items() if parse(target).name == name]
    if settings:
        lines.append(f"- **Settings:** {'; '.join(settings)}")
    if also:
        lines.append(f"- **Also called:** {', '.join(also)}")
    if entry.needs:
        lines.append(f"- **Needs:** {', '.join(sorted(entry.needs))}")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    target = Path(__file__).with_suffix(".md")
    if "--check" in sys.argv:
        sys.exit(0 if target.read_text() == page() else "docs/metrics.md is stale: make docs")
    target.write_text(page())
