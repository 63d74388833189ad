"""What is released: versions agree, archives hold all files, workflows name what exists."""

import importlib.util
import json
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import unskew as us
from shared import ROOT
from shared.pages import DOCS

yaml = pytest.importorskip("yaml")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
STUDIES = tomllib.loads((ROOT / "studies" / "pyproject.toml").read_text())["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))


def script(name):
    """Return a module of .ci, which is no package."""
    spec = importlib.util.spec_from_file_location(name, ROOT / ".ci" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


release = script("release")


def read(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))


# Versions and metadata


def test_versions_agree():
    assert set(release.versions().values()) == {us.__version__}


def test_the_version_of_cards_is_that_of_the_code():
    from unskew.engine.system import versions

    assert versions()["unskew"] == us.__version__


def test_the_studies_go_with_this_version_alone():
    import unskew_studies

    assert STUDIES["version"] == unskew_studies.__version__ == us.__version__
    assert STUDIES["dependencies"] == [f"unskew=={us.__version__}"]
    same = ("license", "requires-python", "authors")
    assert [STUDIES[key] for key in same] == [PROJECT[key] for key in same]
    assert set(STUDIES["classifiers"]) <= set(PROJECT["classifiers"])
    assert (ROOT / "studies" / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()


@pytest.fixture
def copy(tmp_path):
    """Return a copy of all files that state a version, released as 0.2.0."""
    for name in (*release.versions(), "CHANGELOG.md"):
        target = tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        text = (ROOT / name).read_text(encoding="utf-8")
        target.write_text(text.replace(us.__version__, "0.2.0"), encoding="utf-8")
    (tmp_path / "CHANGELOG.md").write_text(
        "# Changelog\n\n## Unreleased\n\n- later\n\n## 0.2.0 (2026-01-31)\n\n### New\n\n- it\n\n"
        "## 0.1.0\n\n- old\n"
    )
    return tmp_path


def test_a_release_has_its_part_of_the_changelog(copy):
    assert release.problems("0.2.0", copy) == []
    assert release.notes("0.2.0", copy) == "### New\n\n- it\n"
    assert release.notes("0.1.0", copy) == "- old\n"
    assert release.notes("0.2", copy) == ""


@pytest.mark.parametrize("name", list(release.versions()))
def test_a_forgotten_version_stops_the_release(copy, name):
    path = copy / name
    path.write_text(path.read_text().replace("0.2.0", "0.1.9"))
    assert [line.partition(":")[0] for line in release.problems("0.2.0", copy)] == [name]


def test_a_tag_without_a_heading_stops_the_release(copy):
    wrong = release.problems("0.3.0", copy)
    assert len(wrong) == len(release.versions()) + 1
    assert "CHANGELOG.md: no heading for 0.3.0" in wrong[-1]


def test_the_commands_of_the_script_say_what_is_wrong(capsys):
    assert release.main(["check", "v9.9.9"]) == 1
    assert "pyproject.toml: version" in capsys.readouterr().err
    assert release.main(["notes", "v0.1.0"]) == 0
    assert capsys.readouterr().out.strip()
    assert release.main(["notes", "v9.9.9"]) == 1
    assert release.main([]) == 2


def test_citation_and_zenodo_agree_with_the_project():
    citation, zenodo = read(ROOT / "CITATION.cff"), json.loads((ROOT / ".zenodo.json").read_text())
    assert citation["title"] == zenodo["title"]
    assert citation["license"] == zenodo["license"] == PROJECT["license"]
    authors = [one["name"] for one in citation["authors"]]
    assert authors == [one["name"] for one in zenodo["creators"]]
    assert authors == [one["name"] for one in PROJECT["authors"]]
    assert zenodo["keywords"] == PROJECT["keywords"]


def test_classifiers_are_what_is_tested():
    jobs = read(ROOT / ".github" / "workflows" / "ci.yml")["jobs"]
    matrix = jobs["test"]["strategy"]["matrix"]
    stated = PROJECT["classifiers"]
    prefix = "Programming Language :: Python :: 3."
    versions = [one.removeprefix(prefix) for one in stated if one.startswith(prefix)]
    assert [f"3.{one}" for one in versions] == matrix["python"]
    assert PROJECT["requires-python"] == f">={matrix['python'][0]}"
    systems = {"ubuntu": "POSIX :: Linux", "macos": "MacOS", "windows": "Microsoft :: Windows"}
    required = {systems[one.partition("-")[0]] for one in matrix["os"]}
    named = {one.partition(" :: ")[2] for one in stated if one.startswith("Operating System")}
    assert named == required
    optional = {one["os"] for one in matrix["include"]} - set(matrix["os"])
    assert f"'{optional.pop()}'" in jobs["test"]["continue-on-error"]
    assert not optional


def test_the_package_says_that_it_is_typed():
    for folder, project in (("src/unskew", PROJECT), ("studies/src/unskew_studies", STUDIES)):
        assert (ROOT / folder / "py.typed").exists()
        assert "Typing :: Typed" in project["classifiers"]


def test_the_recipe_asks_for_what_the_project_asks_for():
    recipe = read(ROOT / "recipe" / "recipe.yaml")
    plain = {one.replace(" ", "") for one in recipe["requirements"]["run"]}
    assert plain - {"python>=${{python_min}}"} == set(PROJECT["dependencies"])
    assert recipe["context"]["python_min"] == PROJECT["requires-python"].removeprefix(">=")
    (entry,) = recipe["build"]["python"]["entry_points"]
    name, place = entry.split(" = ")
    assert PROJECT["scripts"] == {name: place}
    assert recipe["about"]["license"] == PROJECT["license"]
    assert (ROOT / recipe["about"]["license_file"]).exists()
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    assert set(build) <= {one.replace(" ", "") for one in recipe["requirements"]["host"]}


def test_security_names_this_version():
    text = (ROOT / "SECURITY.md").read_text()
    rows = dict(re.findall(r"^\| ([\d.]+) \| (\w+)", text, re.MULTILINE))
    supported = [version for version, fixed in rows.items() if fixed == "yes"]
    assert supported == [us.__version__.rpartition(".")[0]]


def test_the_page_states_the_formats_of_saved_files():
    from unskew.engine import store
    from unskew.evaluation import scores
    from unskew.evaluation.on_disk import _job
    from unskew.labels import annotation_plan
    from unskew.recommend import saved_models
    from unskew.splits import saved as saved_splits
    from unskew.targets import saved as saved_targets

    page = (DOCS / "compatibility.md").read_text()
    stated = dict(re.findall(r"^\| ([a-z ]+) \| [^|]+ \| (\d+) \|$", page, re.MULTILINE))
    assert {name: int(number) for name, number in stated.items()} == {
        "scores": scores.FORMAT,
        "evaluation of files on disk": _job.FORMAT,
        "splits": saved_splits.FORMAT,
        "target items": saved_targets.FORMAT,
        "models": saved_models.FORMAT,
        "annotations": annotation_plan.FORMAT,
        "store of results": store.FORMAT,
    }


# Workflows


def steps(workflow):
    for name, job in workflow["jobs"].items():
        for step in job["steps"]:
            yield name, step


def make_targets():
    text = (ROOT / "Makefile").read_text()
    return set(re.findall(r"^([a-z-]+):", text, re.MULTILINE))


def missing_paths(command):
    """Return what a command names and the repository lacks: targets of make, files and folders."""
    wrong = [f"make {one}" for one in re.findall(r"\bmake ([a-z-]+)", command)]
    wrong = [one for one in wrong if one.split()[1] not in make_targets()]
    words = re.findall(
        r"(?<![\w/.$\"-])(?:\.ci|tests|docs|benchmarks|src|studies|recipe)/[\w./-]+", command
    )
    words += re.findall(r"(?<![\w/.$\"-])(?:constraints\.txt|pyproject\.toml|Makefile)\b", command)
    return wrong + [word for word in words if not (ROOT / word).exists()]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_name_what_exists(path):
    for name, step in steps(read(path)):
        guard = re.findall(r"hashFiles\('(.+?)'\)", step.get("if", ""))
        wrong = [one for one in missing_paths(step.get("run", "")) if one not in guard]
        assert wrong == [], (name, step)


def test_what_workflows_lack_is_seen():
    command = "make tests\nmake test\npython .ci/other.py > x\npython .ci/release.py; ls docs/none"
    assert missing_paths(command) == ["make tests", ".ci/other.py", "docs/none"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_may_do_as_little_as_possible(path):
    workflow = read(path)
    assert workflow["permissions"] == {"contents": "read"}
    for name, job in workflow["jobs"].items():
        assert job.get("timeout-minutes") or name == "check", name
        writes = {key for key, value in job.get("permissions", {}).items() if value == "write"}
        if "contents" in writes or "id-token" in writes:
            assert path.stem == "release", name
            # Code of the repository or of packages never runs with such a right.
            for step in job["steps"]:
                assert "checkout" not in step.get("uses", ""), name
                assert not re.search(r"python|pip|make", step.get("run", "")), name
    for _, step in steps(workflow):
        if "uses" in step:
            assert step["uses"].split("/")[0] in ("actions", "pypa"), step["uses"]
        # Names of branches and tags are text of others: they reach a shell by its environment.
        given = re.findall(r"\$\{\{ *([\w.]+)", step.get("run", ""))
        assert all(one.startswith("matrix.") for one in given), step
        assert "secrets." not in json.dumps(step)


# A tag can be moved to other code; a commit cannot. Pages and Dependabot read the comment.
PINNED = r"[\w.-]+/[\w.-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+"


@pytest.mark.parametrize("path", [*WORKFLOWS, ROOT / "action.yml"], ids=lambda path: path.stem)
def test_actions_are_pinned_by_commit(path):
    used = re.findall(r"^[ -]*uses: *(.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    assert [one for one in used if not re.fullmatch(PINNED, one)] == []
    assert len(used) == path.read_text(encoding="utf-8").count("uses:") > 0


def test_an_action_has_one_pin():
    texts = [path.read_text(encoding="utf-8") for path in (*WORKFLOWS, ROOT / "action.yml")]
    pins = set(re.findall(PINNED, "\n".join(texts)))
    assert len({one.partition("@")[0] for one in pins}) == len(pins), sorted(pins)


def test_a_release_is_published_after_it_was_checked_and_by_nobody_else():
    jobs = read(ROOT / ".github" / "workflows" / "release.yml")["jobs"]
    assert jobs["publish"]["environment"] == "release"
    order, job = [], "announce"
    while job:
        order.append(job)
        job = jobs[job].get("needs")
    assert order == ["announce", "publish", "attest", "build"]
    text = " ".join(step.get("run", "") for step in jobs["build"]["steps"])
    for part in ("release.py check", "-m build", "twine check", "unskew demo", "cyclonedx-py"):
        assert part in text


# Templates


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_forms_of_issues_are_whole(path):
    form = read(path)
    if path.stem == "config":
        assert form["blank_issues_enabled"] is False
        return
    assert form["name"]
    assert form["description"]
    kinds = {"textarea", "input", "dropdown", "checkboxes", "markdown"}
    fields = [one for one in form["body"] if one["type"] != "markdown"]
    assert {one["type"] for one in form["body"]} <= kinds
    assert len({one["id"] for one in fields}) == len(fields)
    assert all(one["attributes"]["label"] for one in fields)
    assert any(one.get("validations", {}).get("required") for one in fields)


def test_files_that_templates_name_exist():
    pages = [ROOT / name for name in ("SECURITY.md", "CODE_OF_CONDUCT.md")]
    for page in (*FORMS, *pages, ROOT / ".github" / "PULL_REQUEST_TEMPLATE.md"):
        text = page.read_text(encoding="utf-8")
        named = re.findall(r"(?:docs/|\.github/workflows/)[\w-]+\.\w+|\b[A-Z_]{4,}\.md", text)
        assert [one for one in named if not (ROOT / one).exists()] == [], page.name


# Archives


def tracked():
    """Return the files of the repository, without those of no use outside it."""
    done = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip("this is no clone: the archive has nothing to be compared with")
    return {line for line in done.stdout.splitlines() if (ROOT / line).exists()}


@pytest.fixture(scope="module")
def archives(tmp_path_factory):
    """Return the names of the files in the archive and in the wheel, and its metadata."""
    if importlib.util.find_spec("hatchling") is None:
        pytest.skip("hatchling is not installed: it builds the archives")
    folder = tmp_path_factory.mktemp("dist")
    for kind in ("sdist", "wheel"):
        command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(folder)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    (packed,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    with tarfile.open(packed) as tar:
        source = {one.name.partition("/")[2]: one.size for one in tar if one.isfile()}
    with zipfile.ZipFile(wheel) as zipped:
        installed = {one.filename: one.file_size for one in zipped.infolist()}
        (about,) = (one for one in installed if one.endswith(".dist-info/METADATA"))
        metadata = zipped.read(about).decode()
    return source, installed, metadata, (packed, wheel)


@pytest.mark.slow
def test_the_archive_holds_the_repository_and_nothing_else(archives):
    source = archives[0]
    assert set(source) - {"PKG-INFO"} == tracked()
    assert max(source.values()) < 1_000_000


@pytest.mark.slow
def test_the_wheel_holds_every_module_and_nothing_else(archives):
    installed = {name for name in archives[1] if ".dist-info/" not in name}
    ours = {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src" / "unskew").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert installed == ours
    assert "unskew/py.typed" in installed


@pytest.mark.slow
def test_the_wheel_of_the_studies_holds_every_module_and_nothing_else(tmp_path):
    if importlib.util.find_spec("hatchling") is None:
        pytest.skip("hatchling is not installed: it builds the archives")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT / "studies", capture_output=True, check=True)
    (wheel,) = tmp_path.glob("unskew_studies-*.whl")
    with zipfile.ZipFile(wheel) as zipped:
        installed = {name for name in zipped.namelist() if ".dist-info/" not in name}
    home = ROOT / "studies" / "src"
    assert installed == {
        path.relative_to(home).as_posix()
        for path in (home / "unskew_studies").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


@pytest.mark.slow
def test_the_wheel_is_as_small_as_the_page_says(archives):
    size = Path(archives[3][1]).stat().st_size / 1e6
    (stated,) = re.findall(r"one file of ([\d.]+) MB", (DOCS / "install.md").read_text())
    assert abs(size - float(stated)) < 0.3, size


@pytest.mark.slow
def test_the_metadata_are_those_of_the_project(archives):
    lines = archives[2].partition("\n\n")[0].splitlines()
    pairs = [line.partition(": ")[::2] for line in lines]
    assert ("Version", us.__version__) in pairs
    assert ("License-Expression", PROJECT["license"]) in pairs
    classifiers = [value for key, value in pairs if key == "Classifier"]
    assert sorted(classifiers) == sorted(PROJECT["classifiers"])
