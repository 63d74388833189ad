"""Write docs/api/, for the site only, from the docstrings of all public names."""

import inspect
import re
import shutil
from functools import cached_property
from pathlib import Path

import unskew
import unskew_studies

HEAD = """# Python reference

One page per package. Everything is reached from `import unskew as us`: names of the first page as
`us.evaluate`, all others through their package, as `us.stats.kendall`. A package is loaded when it
is first used. The last page has a package of its own: `import unskew_studies`.
`help(us.evaluate)` prints the same text. `docs/api.py` writes these pages from the docstrings.
"""
PACKAGES = {
    "top": ("Top level", "What most programs need: read, judge, compare, audit."),
    "data": ("Data", "Ratings, named data sets, what is liked, summaries."),
    "splits": (
        "Splits",
        "Training and test parts, interventions, checks of a split.",
    ),
    "targets": ("Target items", "Which items a system must rank."),
    "recommend": ("Recommenders", "The algorithms that are built in, and saved models."),
    "worlds": ("Worlds", "Simulated data whose full truth is known."),
    "judging": ("Judging", "Lists laid over judgments; exact ranks."),
    "metrics": ("Metrics", "Names and definitions, and metrics that you define."),
    "conventions": (
        "Conventions",
        "What other libraries compute; which conventions give a number, and the path between two.",
    ),
    "evaluation": ("Evaluation", "Scores, what chance scores, logs larger than memory."),
    "stats": ("Statistics", "Significance, power, robustness, agreement."),
    "bias": ("Bias", "What popularity does to metrics on some data."),
    "unbiased": (
        "Unbiased estimates",
        "Propensities, bounds, strata, sampled metrics.",
    ),
    "labels": ("Labels", "Which pairs people should label; estimates from people and a model."),
    "online": ("Online tests", "A/B tests and interleaving, simulated on worlds."),
    "experiment": ("Experiments", "Plans, their results, tuning."),
    "auditing": ("Audit", "Audits, null experiments, observed against true values."),
    "gating": ("Gate", "Whether a candidate may replace the system in production."),
    "report": ("Reports", "Reports as files and in notebooks."),
    "tracking": ("Tracking", "Results in MLflow and in Weights & Biases."),
    "testing": ("Testing", "Checks for metrics, algorithms and splitters that you write."),
    "unskew_studies": ("Studies", "Systems of the five papers, and what `us.study` returns."),
}
"""Every public package: its title, and what is in it. `top` is unskew itself."""
FOLDER = Path(__file__).with_suffix("")
SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.MULTILINE)


def pages() -> dict[str, str]:
    """Return the pages by their names, with `index` first."""
    return {"index": index(), **{package: page(package) for package in PACKAGES}}


def names(package: str) -> dict[str, object]:
    """Return what a package makes public, by dotted names, in alphabetical order."""
    apart = {"top": unskew, "unskew_studies": unskew_studies}
    module = apart[package] if package in apart else getattr(unskew, package)
    before = "" if package == "top" else f"{package}."
    public = {name: getattr(module, name) for name in sorted(module.__all__, key=str.lower)}
    return {
        f"{before}{name}": thing for name, thing in public.items() if not inspect.ismodule(thing)
    }


def index() -> str:
    """Return the page that leads to all others."""
    parts = [HEAD]
    for package, (title, holds) in PACKAGES.items():
        links = [f"[{name}]({package}.md#{anchor(name)})" for name in names(package)]
        parts.append(f"## [{title}]({package}.md)\n\n{holds}\n\n{' · '.join(links)}\n")
    entries = "\n".join(PACKAGES)
    return "\n".join([*parts, f"```{{toctree}}\n:hidden:\n:maxdepth: 1\n\n{entries}\n```\n"])


def anchor(name: str) -> str:
    """Return the anchor of the heading of a name."""
    return name.lower().replace(".", "")


def page(package: str) -> str:
    """Return the page of a package."""
    title, holds = PACKAGES[package]
    entries = [entry(name, thing) for name, thing in names(package).items()]
    return "\n".join([f"# {title}\n\n{holds}\n", *entries])


def entry(name: str, thing: object) -> str:
    """Return the entry of a name: its signature and its docstring."""
    lines = [f"## {name}\n"]
    call = signature(name, thing)
    if call:
        lines.append(f"```text\n{call}\n```\n")
    lines.append(prose(inspect.getdoc(thing) or ""))
    if inspect.isclass(thing):
        lines += methods(thing)
    return "\n".join(lines)


def signature(name: str, thing: object) -> str:
    """Return the call of something, with a line per parameter where there are many."""
    if inspect.isclass(thing) and issubclass(thing, Exception):
        return ""
    try:
        whole = inspect.signature(thing)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return ""
    bare = [
        one.replace(annotation=inspect.Parameter.empty)
        for one in whole.parameters.values()
        if not one.name.startswith("_")
    ]
    text = f"{name}{whole.replace(parameters=bare, return_annotation=inspect.Signature.empty)}"
    text = re.sub(r"<function (\w+) at 0x[0-9a-f]+>", r"\1", text)  # an address is no default
    if len(text) <= 90:
        return text
    inside = text[len(name) + 1 : -1]
    return f"{name}(\n" + "".join(f"    {one},\n" for one in _split(inside)) + ")"


def _split(text: str) -> list[str]:
    """Split at commas that stand in no brackets or quotes."""
    parts, depth, quote, last = [], 0, "", 0
    for at, sign in enumerate(text):
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "'\"":
            quote = sign
        elif sign in "([{<":
            depth += 1
        elif sign in ")]}>":
            depth -= 1
        elif sign == "," and depth == 0:
            parts.append(text[last:at].strip())
            last = at + 1
    return [*parts, text[last:].strip()]


def methods(thing: type) -> list[str]:
    """Return a line for each public method and property."""
    lines = []
    for name, member in sorted(inspect.getmembers(thing)):
        doc = inspect.getdoc(member) or ""
        mine = any(name in vars(base) for base in thing.__mro__ if "unskew" in base.__module__)
        known = inspect.isroutine(member) or isinstance(member, property | cached_property)
        if name.startswith("_") or not (doc and mine and known):
            continue
        called = "()" if callable(member) else ""
        lines.append(f"- `{name}{called}`: {' '.join(doc.split(chr(10) * 2)[0].split())}")
    return ["Methods and properties:\n", *lines, ""] if lines else []


def prose(doc: str) -> str:
    """Return a docstring as Markdown: sections in bold, parameters as a list, examples as code."""
    pieces = SECTION.split(doc)
    lines = [pieces[0].strip(), ""]
    for title, body in zip(pieces[1::2], pieces[2::2], strict=True):
        lines += [f"**{title}**", ""]
        text = body.strip("\n")
        lines += ["```pycon", text, "```"] if title == "Examples" else _terms(text)
        lines.append("")
    return "\n".join(lines)


def _terms(text: str) -> list[str]:
    """Return `name` and the indented lines below it as entries of a list."""
    lines = []
    for line in text.splitlines():
        if line and not line.startswith(" "):
            lines.append("- " + ", ".join(f"`{one.strip()}`" for one in line.split(",")) + ":")
        else:
            lines.append(f"  {line.strip()}" if line.strip() else "")
    return lines


if __name__ == "__main__":
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    for name, text in pages().items():
        (FOLDER / f"{name}.md").write_text(text)
