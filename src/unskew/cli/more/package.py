"""Commands about the package: metrics, algorithms, schemas of results, kernels compiled ahead."""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Mapping, Sequence
from importlib import import_module, resources
from time import perf_counter
from typing import Annotated, Any

from unskew.cli import outputs
from unskew.cli.options import PlainFormat
from unskew.cli.parameters import argument
from unskew.report.text import counted

MARKS = """\
The prefix anti- gives the same metric of disliked items. The prefix condensed- removes
unjudged items first. @k sets a cutoff: anti-P@10, condensed-nDCG@10, SR(gamma=1)@10."""


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
    from unskew.metrics.names import REGISTRY, parse

    if library is not None:
        _print_library(library, format == "json")
        return
    if name is not None:
        entry = _entry(str(parse(name)))
        settings = ", ".join(
            f"{key}={setting['default']}"
            + (f" ({'|'.join(setting['words'])})" if setting["words"] else "")
            for key, setting in entry["settings"].items()
        )
        lines = [f"{entry['name']}: {entry['text']}"]
        lines.append(f"Settings: {settings or 'none'}. Better: {entry['better']}.")
        outputs.print_plain(format, [entry], lines)
        return
    columns = {"name": "name", "what it is": "summary", "settings": "settings"}
    columns["also called"] = "also_called"
    outputs.print_list(list(map(_entry, REGISTRY)), columns, format == "json", [MARKS])


def _entry(name: str) -> dict[str, Any]:
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
        outputs.print_list(table.to_dicts(), {name: name for name in table.columns}, as_json)
        return
    source = library_of(name)
    keys = ("name", "option", "given", "metric", "differences")
    rows = [
        (row.name, row.option, row.given, row.ours or row.metric, differences([(row, None)]))
        for row in source.metrics
    ]
    titles = ("its name", "its option", "given", "metric", "other than ours")
    reasons: dict[str, list[str]] = {}
    for gap in source.missing:
        name = f"{gap.name} [{gap.option}]" if gap.option else gap.name
        reasons.setdefault(f"({gap.given}): {gap.why}" if gap.given else gap.why, []).append(name)
    below = [
        f"not computed: {', '.join(dict.fromkeys(names))}: {why}" for why, names in reasons.items()
    ]
    columns = dict(zip(titles, keys, strict=True))
    entries = [dict(zip(keys, row, strict=True)) for row in rows]
    outputs.print_list(entries, columns, as_json, [*below, f"{source}. {source.given}"])


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
    from unskew.recommend import registry
    from unskew.recommend.registry import settings_of

    classes = registry.ALGORITHMS if name is None else {name: registry.algorithm_class(name)}
    entries: list[dict[str, Any]] = [
        {"name": key, "text": inspect.cleandoc(kind.__doc__ or ""), "settings": settings_of(kind)}
        for key, kind in classes.items()
    ]
    if name is not None:
        settings = ", ".join(f"{key}={x}" for key, x in entries[0]["settings"].items())
        lines = [f"{name}: {entries[0]['text']}", f"\nDefaults: {settings or 'no settings'}."]
        outputs.print_plain(format, entries, lines)
        return
    columns = {"name": "name", "what it is": "text", "settings": "settings"}
    below = "unskew algorithms NAME prints the formula, the settings and the reference of one"
    outputs.print_list(entries, columns, format == "json", [f"{below} algorithm."])


SHARED = {"audit": "report", "demo": "report", "study run": "report", "timeline": "report"}
"""Commands whose JSON has the schema of another name."""

ANSWERS: Mapping[str, tuple[int, *tuple[str, ...]]] = {
    "bias lists": (2, "bias.popularity.list_popularity:LIST_POPULARITY"),
    "bias null": (2, "auditing.null.null_experiment:NULL"),
    "bias pairs": (2, "bias.pairs.item_pairs:ITEM_PAIRS"),
    "bias truth": (2, "auditing.truth.truth:TRUTH"),
    "compare": (2, "stats.compare.compare:PAIRS", "stats.compare.compare_segments:SEGMENTS"),
    "distribution": (
        2,
        "stats.compare.user_distribution:USER_DISTRIBUTION",
        "stats.compare.lexirecall:LEXIRECALL",
    ),
    "evaluate": (2, "judging.hygiene:HYGIENE", "evaluation.on_disk.files:FILE_MEANS"),
    "explain": (2, "conventions.explaining.waterfall:WATERFALL"),
    "groups": (
        2,
        "stats.compare.group_gaps:GROUP_GAPS",
        "stats.compare.item_group_gaps:ITEM_GROUPS",
    ),
    "ranking": (2, "stats.compare.compare_data_sets:DATA_SETS"),
    "strata": (2, "unbiased.strata:STRATA", "unbiased.strata:HEADS"),
    "estimate": (
        *(5, "unbiased.weighted_averages:WEIGHTED", "unbiased.bounds:BOUNDS"),
        *("unbiased.sensitivity:SENSITIVITY", "unbiased.estimate:CLIPPING"),
        "labels.assisted:ASSISTED",
    ),
    "annotate status": (
        2,
        "labels.annotation_status:LEVELS",
        "labels.annotation_status:DIFFERENCES",
    ),
    "power": (3, "stats.agreement.power:POWER", "stats.agreement.power:PAIR_SIZES"),
    "robustness": (2, "stats.agreement.robustness:ROBUSTNESS"),
}
"""Commands that answer questions: the version of their schema, and the questions it follows from.
What else they print stands in a file.
"""

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

    all_schemas = schemas()
    command = " ".join(name or ())
    if command in WITHOUT:
        raise SettingError(f"{command} has no JSON: it {WITHOUT[command]}")
    if command and command not in all_schemas:
        raise unknown_name("command", command, all_schemas)
    if command:
        outputs.print_json(all_schemas[command], indent=1)
    elif format == "json":
        versions = {key: schema["version"] for key, schema in all_schemas.items()}
        outputs.print_json([{"command": key, "version": versions[key]} for key in versions])
    else:
        columns = {"command": "command", "version": "version", "what it is": "title"}
        entries = [{**schema, "command": key} for key, schema in all_schemas.items()]
        outputs.print_list(entries, columns)


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
    for name, (version, *questions) in ANSWERS.items():
        result[name] = _derived(name, version, questions, result.get(name, {}))
    return dict(sorted(result.items()))


def _derived(
    name: str, version: int, questions: Sequence[str], more: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the schema of a command: what follows from its questions, and what a file adds."""
    forms = []
    for question in questions:
        module, _, constant = question.partition(":")
        forms.append(getattr(import_module(f"unskew.{module}"), constant).schema())
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:unskew:{name.replace(' ', '-')}:{version}",
        "title": f"What unskew {name} --format json prints",
        "version": version,
        "anyOf": [*forms, *more.get("anyOf", ())],
    }


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
    kernels = compiled_kernels()
    lost = kernels.pop("", set())
    number = sum(map(len, kernels.values()))
    folder = os.path.commonpath(kernels) if kernels else None
    facts = {"kernels": number, "folder": folder, "kept_nowhere": len(lost), "seconds": spent}
    lines = []
    if kernels:
        lines = [f"{counted(number, 'kernel')} ready in {spent:.0f} s, kept under {folder}"]
    if lost:
        lines.append(f"{counted(len(lost), 'kernel')} kept nowhere: each process compiles again")
    outputs.print_plain(format, facts, () if quiet else lines)
