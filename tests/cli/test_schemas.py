"""JSON for programs: every command that prints a result has a schema, and keeps to it."""

import copy
import hashlib
import json
import re
from pathlib import Path

import jsonschema
import pytest

from shared.commands import COMMANDS, GATES, REPORTS
from shared.json_calls import CALLS, output_of, printed, write_files
from unskew.cli.more.package import SHARED, WITHOUT, schemas
from unskew.data.formats.download import Receipt

SCHEMAS = schemas()
FROZEN = Path(__file__).with_name("schema_versions.json")
NOT_RUN = {
    "data get": "downloads; below without a download",
    "warmup": "compiles for half a minute; below without compiling",
}
"""Commands with a schema that are not called here."""


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Return a folder with what the calls read."""
    folder = tmp_path_factory.mktemp("json")
    write_files(folder)
    return folder


def options_of(command):
    return {name for one in command.params for name in one.opts}


def test_every_command_has_a_schema_or_a_reason_to_have_none():
    assert set(COMMANDS) == set(SCHEMAS) | set(WITHOUT)
    assert not set(SCHEMAS) & set(WITHOUT)
    for name in SCHEMAS:
        assert "--format" in options_of(COMMANDS[name]) or name == "demo", name
    assert set(SHARED) == set(REPORTS)
    assert set(CALLS) == set(SCHEMAS) - set(SHARED) - set(NOT_RUN)


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_is_one_and_carries_its_version(name):
    schema = SCHEMAS[name]
    jsonschema.Draft202012Validator.check_schema(schema)
    key = SHARED.get(name, name).replace(" ", "-")
    assert schema["$id"] == f"urn:unskew:{key}:{schema['version']}"


def promise(schema):
    """Return a digest of what a schema promises, without its title."""
    kept = {key: value for key, value in schema.items() if key not in ("title", "$id", "version")}
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()[:16]


def test_a_changed_schema_has_a_new_version():
    """After a change: raise `version` and `$id`, then write the new line here."""
    frozen = json.loads(FROZEN.read_text())
    now = {name: [one["version"], promise(one)] for name, one in SCHEMAS.items()}
    assert now == frozen, "raise the version of what changed, then update schema_versions.json"


CASES = [(name, tuple(call)) for name, calls in CALLS.items() for call in calls]


@pytest.mark.parametrize(("name", "call"), CASES, ids=lambda x: x if isinstance(x, str) else None)
def test_what_is_printed_keeps_to_the_schema(home, monkeypatch, name, call):
    monkeypatch.chdir(home)
    value = printed(name, [*call])
    check = jsonschema.Draft202012Validator(SCHEMAS[name])
    assert not list(check.iter_errors(value))
    broken = list(without_a_key(value, SCHEMAS[name]))
    assert broken or name in ("evaluate", "schema"), "no key is demanded"
    for wrong in broken:
        assert not check.is_valid(wrong)
    assert not check.is_valid("text")


def without_a_key(value, schema):
    """Yield the value without each key that its schema demands, at the top or in the first row."""
    for form in schema.get("anyOf", [schema]):
        if not jsonschema.Draft202012Validator(form).is_valid(value):
            continue
        is_rows = isinstance(value, list)
        for key in (form.get("items", {}) if is_rows else form).get("required", ()):
            wrong = copy.deepcopy(value)
            del (wrong[0] if is_rows else wrong)[key]
            yield wrong


def test_the_means_of_evaluate_are_demanded(home, monkeypatch):
    monkeypatch.chdir(home)
    value = printed("evaluate", CALLS["evaluate"][0])
    check = jsonschema.Draft202012Validator(SCHEMAS["evaluate"])
    del value["a"]["P@2"]["mean"]
    assert not check.is_valid(value)
    value["a"]["P@2"]["mean"] = "0.5"
    assert not check.is_valid(value)


def test_a_report_on_standard_output_is_json_alone(home, monkeypatch):
    monkeypatch.chdir(home)
    code, out, err = output_of("timeline", *REPORTS["timeline"], "--format", "json", "-o", "-")
    assert code == 0, err
    jsonschema.validate(json.loads(out), SCHEMAS["timeline"])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["audit", "study run"])
def test_reports_keep_to_the_schema(home, monkeypatch, name):
    monkeypatch.chdir(home)
    words = [*name.split(), *REPORTS[name], "--format", "json", "-o", "-"]
    code, out, err = output_of(*words, *(["--quick"] if name == "audit" else []))
    assert code == 0, err
    jsonschema.validate(json.loads(out), SCHEMAS[name])


def test_the_command_prints_schemas(call):
    code, out, _ = call("schema", "bias", "null")
    assert (code, json.loads(out)) == (0, SCHEMAS["bias null"])
    assert all(name in call("schema")[1] for name in ("evaluate", "bias null", "gate"))
    code, _, err = call("schema", "evalute")
    assert (code, "Did you mean 'evaluate'" in err) == (2, True)
    code, _, err = call("schema", "world")
    assert (code, "world has no JSON: it writes a folder" in err) == (2, True)


def test_warmup_without_compiling(call, monkeypatch):
    from unskew.auditing import compile_ahead

    monkeypatch.setattr(compile_ahead, "compile_evaluation", lambda: None)
    code, out, _ = call("warmup", "--format", "json")
    assert code == 0
    jsonschema.validate(json.loads(out), SCHEMAS["warmup"])


@pytest.mark.parametrize("receipt", [None, Receipt("https://x", 3, "ab", False, ("its size",))])
def test_data_get_without_a_download(call, monkeypatch, tmp_path, receipt):
    from unskew.data.formats import catalog

    monkeypatch.setattr(catalog, "is_there", lambda *_: True)
    monkeypatch.setattr(catalog, "get", lambda *_, **__: tmp_path)
    monkeypatch.setattr(catalog, "receipt", lambda _: receipt)
    code, out, err = call("data", "get", "ml-1m", "--format", "json")
    assert code == 0, err
    value = json.loads(out)
    jsonschema.validate(value, SCHEMAS["data get"])
    assert (value["name"], value["folder"], value["was_there"]) == ("ml-1m", str(tmp_path), True)


def test_json_of_a_split_needs_an_audit(home, call, monkeypatch):
    monkeypatch.chdir(home)
    code, _, err = call("split", "test.csv", "-o", "parts", "--format", "json")
    assert (code, "--format json is for --audit" in err) == (2, True)


# Exit codes


def codes_on_the_page():
    """Return the codes in the table of docs/cli.md."""
    text = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()
    return {int(code) for code in re.findall(r"^\| (\d+) \|", text, re.M)}


def test_the_exit_codes_of_the_page_are_those_of_the_code():
    from unskew.cli.boundary import FAILED, NO_READER, REFUSED, STOPPED
    from unskew.cli.doors.split import FAILED as LIGHT
    from unskew.gating.result import EXIT_CODES

    known = {0, FAILED, REFUSED, STOPPED, NO_READER, LIGHT, *EXIT_CODES.values()}
    assert codes_on_the_page() == known


EXITS = [
    (["evaluate", *CALLS["evaluate"][0]], 0),
    (["evaluate", "-j", "none.csv", "-r", "a.csv", "-m", "P@2"], 1),
    (["evaluate", "-j", "broken.csv", "-r", "a.csv", "-m", "P@2", "--liked", "4"], 1),
    (["evaluate", *CALLS["evaluate"][0], "--format", "xml"], 2),
    (["evaluate", "--no-such-option"], 2),
    (["no-such-command"], 2),
    (["gate", *GATES["gate"]], 3),
    (["gate", *GATES["gate"][:-2], "--candidate", "none.csv"], 2),
    (["split", "test.csv", "--audit", "--fail-on", "look"], 3),
]


@pytest.mark.parametrize(("words", "code"), EXITS)
def test_exit_codes(home, monkeypatch, words, code):
    monkeypatch.chdir(home)
    (home / "broken.csv").write_text("user,item,rating\n1,2,many\n")
    assert output_of(*words)[0] == code
