"""Commands about the package: metrics, algorithms, schemas of results, kernels compiled ahead."""

from __future__ import annotations

import inspect
import json
import os
from importlib import resources
from time import perf_counter
from typing import Annotated, Any

from unskew.cli import outputs
from unskew.cli.options import PlainFormat
from unskew.cli.parameters import argument
from unskew.report.text import counted


def metrics_command(
    *,
    name: Annotated[str | None, argument()] = None,
    library: str | None = None,
    format: PlainFormat = "text",  # noqa: A002 - the option's name
) -> None:
    """List the metrics, or explain one.

    [bold]Examples[/bold]

      unskew metrics

      unskew metrics nDCG

      unskew metrics --library all

      unskew metrics --library recbole

    Arguments
    ---------
    name
        Name of a metric, to print its definition.

    What is measured
    ----------------
    library
        List the metrics of another library and its conventions; all: list the libraries.
    """
    from unskew.metrics.names import REGISTRY, aliases, parse

    if library is not None:
        _print_library(library, format == "json")
        return
    if format == "json":
        chosen = REGISTRY if name is None else [str(parse(name))]
        outputs.print_json(list(map(_entry, chosen)))
        return
    if name is not None:
        metric = parse(name)
        definition = metric.definition
        settings = ", ".join(
            f"{key}={default}" + (f" ({'|'.join(words)})" if words else "")
            for key, default in metric.defaults.items()
            for words in [definition.params[key].words]
        )
        outputs.say(f"{metric}: {inspect.cleandoc(definition.compute.__doc__ or '')}")
        outputs.say(f"Settings: {settings or 'none'}. Better: {metric.better}.")
        return
    also: dict[str, list[str]] = {}
    for alias, target in aliases().items():
        also.setdefault(parse(target).name, []).append(alias)
    rows = [
        (key, metric.summary, ", ".join(metric.params), ", ".join(also.get(key, ())))
        for key, metric in REGISTRY.items()
    ]
    outputs.print_list(("name", "what it is", "settings", "also called"), rows)
    outputs.say(
        "The prefix anti- gives the same metric of disliked items. The prefix condensed- removes"
    )
    outputs.say(
        "unjudged items first. @k sets a cutoff: anti-P@10, condensed-nDCG@10, SR(gamma=1)@10."
    )


def _entry(name: str) -> dict[str, object]:
    """Return what is known of a metric, for programs."""
    from unskew.metrics.names import aliases, parse

    metric = parse(name)
    definition = metric.definition
    return {
        "name": name,
        "summary": definition.summary,
        "text": inspect.cleandoc(definition.compute.__doc__ or ""),
        "settings": {
            key: {"default": default, "words": list(definition.params[key].words)}
            for key, default in metric.defaults.items()
        },
        "better": metric.better,
        "also_called": [alias for alias, of in aliases().items() if parse(of).name == metric.name],
    }


def _print_library(name: str, as_json: bool) -> None:
    """Print the libraries, or the metrics of one and what differs from our defaults."""
    from unskew.conventions.libraries import known_libraries
    from unskew.conventions.libraries import library as library_of
    from unskew.evaluation.compat import differences

    if name == "all":
        table = known_libraries()
        if as_json:
            outputs.print_json(table.to_dicts())
            return
        outputs.print_list(table.columns, [tuple(map(str, row)) for row in table.iter_rows()])
        return
    source = library_of(name)
    rows = [
        (row.name, row.option, row.given, row.ours or row.metric, differences([(row, None)]))
        for row in source.metrics
    ]
    header = ("its name", "its option", "given", "metric", "other than ours")
    if as_json:
        keys = ("name", "option", "given", "metric", "differences")
        outputs.print_json([dict(zip(keys, row, strict=True)) for row in rows])
        return
    outputs.print_list(header, rows)
    reasons: dict[str, list[str]] = {}
    for gap in source.missing:
        name = f"{gap.name} [{gap.option}]" if gap.option else gap.name
        reasons.setdefault(f"({gap.given}): {gap.why}" if gap.given else gap.why, []).append(name)
    for why, names in reasons.items():
        outputs.say(f"not computed: {', '.join(dict.fromkeys(names))}: {why}")
    outputs.say(f"{source}. {source.given}")


def algorithms_command(
    *,
    name: Annotated[str | None, argument()] = None,
    format: PlainFormat = "text",  # noqa: A002 - the option's name
) -> None:
    """List the recommenders, or explain one.

    [bold]Examples[/bold]

      unskew algorithms

      unskew algorithms slim

      unskew algorithms --format json

    Arguments
    ---------
    name
        Name of an algorithm, to print its definition.
    """
    from unskew.recommend.registry import ALGORITHMS, algorithm_class, settings_of

    shown = ALGORITHMS if name is None else {name: algorithm_class(name)}
    texts = {key: inspect.cleandoc(kind.__doc__ or "") for key, kind in shown.items()}
    settings = {
        key: ", ".join(f"{setting}={value}" for setting, value in settings_of(kind).items())
        for key, kind in shown.items()
    }
    if format == "json":
        entries = [
            {"name": key, "text": texts[key], "settings": settings_of(kind)}
            for key, kind in shown.items()
        ]
        outputs.print_json(entries)
    elif name is None:
        rows = [(key, text.splitlines()[0], settings[key]) for key, text in texts.items()]
        outputs.print_list(("name", "what it is", "settings"), rows)
        outputs.say(
            "unskew algorithms NAME prints the formula, the settings and the reference of one "
            "algorithm."
        )
    else:
        outputs.say(f"{name}: {texts[name]}")
        outputs.say(f"\nDefaults: {settings[name] or 'no settings'}.")


SHARED = {"audit": "report", "demo": "report", "study run": "report", "timeline": "report"}
"""Commands whose JSON has the schema of another name."""

WITHOUT = {
    "annotate extend": "writes a folder",
    "annotate plan": "writes a folder",
    "data filter": "writes a file of ratings",
    "intervene": "writes a folder",
    "recommend": "writes a file of lists",
    "world": "writes a folder; its --format is of the files in it",
}
"""Commands without JSON, and why: their result is what they write."""


def schema_command(
    *,
    name: Annotated[list[str] | None, argument()] = None,
    format: PlainFormat = "text",  # noqa: A002 - the option's name
) -> None:
    """Print the JSON schema of what a command prints with --format json, or list the schemas.

    A schema has a version, which rises when a key goes or changes its meaning; new keys can come at
    any time. A number that is undefined is null.

    [bold]Examples[/bold]

      unskew schema

      unskew schema evaluate

      unskew schema bias null

    Arguments
    ---------
    name
        A command, such as evaluate or bias null, to print its schema.
    """
    from unskew.errors import SettingError, unknown_name

    known = schemas()
    wanted = " ".join(name or ())
    if wanted in WITHOUT:
        raise SettingError(f"{wanted} has no JSON: it {WITHOUT[wanted]}")
    if wanted and wanted not in known:
        raise unknown_name("command", wanted, known)
    if wanted:
        outputs.print_json(known[wanted], indent=1)
    elif format == "json":
        versions = [{"command": key, "version": one["version"]} for key, one in known.items()]
        outputs.print_json(versions)
    else:
        rows = [(key, str(one["version"]), one["title"]) for key, one in known.items()]
        outputs.print_list(("command", "version", "what it is"), rows)


def schemas() -> dict[str, dict[str, Any]]:
    """Return the schema of each command that has one, by the command's name."""
    folder = resources.files("unskew.cli") / "schemas"
    by_file = {
        entry.name.removesuffix(".json"): json.loads(entry.read_text(encoding="utf-8"))
        for entry in folder.iterdir()
        if entry.name.endswith(".json")
    }
    result = {name.replace("-", " "): one for name, one in by_file.items() if name != "report"}
    result |= {name: by_file[key] for name, key in SHARED.items()}
    return dict(sorted(result.items()))


def warmup_command(
    *,
    everything: bool = False,
    format: PlainFormat = "text",  # noqa: A002 - the option's name
    quiet: bool = False,
) -> None:
    """Compile now what the first commands would compile: half a minute, once per installation.

    The loops that count and rank are compiled when they are first needed and kept on disk. After
    this, evaluate and compare find them there; with --all, audit and its systems too. It is for
    images of containers, shared installations and machines whose users must not wait.

    [bold]Examples[/bold]

      unskew warmup

      NUMBA_CACHE_DIR=/opt/kernels unskew warmup --all

    How it runs
    -----------
    everything
        Also what audits train, rank and test: a minute more.
    """
    from unskew.auditing.compile_ahead import compile_all, compile_evaluation
    from unskew.engine.compiled import compiled_kernels

    begin = perf_counter()
    compile_evaluation()
    if everything:
        compile_all()
    spent = perf_counter() - begin
    kept = compiled_kernels()
    lost = kept.pop("", set())
    number = sum(map(len, kept.values()))
    folder = os.path.commonpath(kept) if kept else None
    if format == "json":
        outputs.print_json(
            {"kernels": number, "folder": folder, "kept_nowhere": len(lost), "seconds": spent}
        )
        return
    if quiet:
        return
    if kept:
        outputs.say(f"{counted(number, 'kernel')} ready in {spent:.0f} s, kept under {folder}")
    if lost:
        outputs.say(f"{counted(len(lost), 'kernel')} kept nowhere: each process compiles again")
