"""Results in MLflow and Weights & Biases: what is logged, and the real packages where installed."""

import importlib.util
import json
import time
from pathlib import Path

import pytest

import unskew as us
from unskew.stats.compare.ranking import means_of
from unskew.tracking.trackers import contents_of

TEST = {
    "user": [u for u in range(30) for _ in range(2)],
    "item": [0, 1] * 30,
    "rating": [5, 1] * 30,
}
RUNS = {
    "mine": {u: [0, 1, 2 + u % 3] for u in range(30)},
    "their@s/x": {u: [1, 0] if u % 3 else [0, 1] for u in range(30)},
}


@pytest.fixture(scope="module")
def judged():
    return us.judge(TEST, RUNS, liked=4)


@pytest.fixture(scope="module")
def scores(judged):
    return us.evaluate(judged, ["P@1", "SR(gamma=1)@2"])


def needs(package):
    there = importlib.util.find_spec(package) is not None
    return pytest.mark.skipif(not there, reason=f"the package {package} is not installed")


# What is logged


def test_scores_have_means_a_card_and_a_report(scores):
    contents = contents_of(scores)
    means = scores.means()
    assert contents.metrics == {
        "mine/P_at_1": means["mine"]["P@1"],
        "mine/SR_gamma_1__at_2": means["mine"]["SR(gamma=1)@2"],
        "their_at_s_x/P_at_1": means["their@s/x"]["P@1"],
        "their_at_s_x/SR_gamma_1__at_2": means["their@s/x"]["SR(gamma=1)@2"],
    }
    assert contents.left_out == ()
    assert contents.tags == {"unskew.result": "Scores"}
    files = {name.rpartition("/")[2]: content for name, content in contents.files.items()}
    assert set(files) == {"result.json", "card.json", "report.html"}
    assert all(name.startswith("unskew/Scores/") for name in contents.files)
    assert json.loads(files["card.json"]) == json.loads(json.dumps(dict(scores.card)))
    assert json.loads(files["result.json"]) == scores.to_dict()
    assert files["report.html"].startswith(b"<!DOCTYPE html>")
    assert "report.html" not in " ".join(contents_of(scores, report=False).files)


def test_other_results(judged, scores):
    compared = us.compare(scores, "P@1")
    assert contents_of(compared).metrics["mine/P_at_1"] == means_of(compared, "P@1")["mine"]
    by = {"user": list(range(30)), "group": ["x", "y"] * 15}
    segments = us.compare(scores, "P@1", by=by, least_users=1)
    assert contents_of(segments, report=False).metrics["x/mine/P_at_1"] == 1.0
    gate = us.gate(judged, candidate="mine", production="their@s/x", metric="RR@3")
    contents = contents_of(gate)
    assert contents.tags == {"unskew.result": "Gate", "unskew.verdict": gate.verdict}
    assert contents.metrics["change/RR_at_3"] == gate.better.change
    assert contents_of(us.stats.power(scores, permutations=20)).metrics == {}


def test_an_audit_has_means_by_design():
    world = us.world("shop", users=60, items=30, seed=3)
    audit = us.audit(world.ratings, plan="quick", liked=4, repeats=1, designs=["all-items"])
    contents = contents_of(audit, report=False)
    (design,) = audit.scores
    system = next(iter(audit.systems))
    parts = [part.mean(audit.metric)[system] for part in audit.scores[design]]
    name = f"{design}/{system}/{audit.metric.replace('@', '_at_')}"
    assert contents.metrics[name] == pytest.approx(sum(parts) / len(parts))
    assert "unskew/Audit/card.json" in contents.files


def test_undefined_means_are_named_not_logged():
    test = {"user": [1, 2], "item": [5, 5], "rating": [1, 5]}
    how = {"liked": 4, "users": "with-list", "undefined": "skip"}
    scores = us.evaluate(test, {"a": {1: [5]}}, "AP", **how)
    contents = contents_of(scores, report=False)
    assert contents.metrics == {}
    assert contents.left_out == ("a/AP",)


def test_names_stay_apart_and_have_a_prefix():
    runs = {"a(1)": {1: [5]}, "a[1]": {1: [6, 5]}}
    scores = us.evaluate({"user": [1], "item": [5], "rating": [5]}, runs, "RR", liked=4)
    contents = contents_of(scores, "fold 1", report=False)
    assert contents.metrics == {"fold 1/a_1_/RR": 1.0, "fold 1/a_1_/RR_2": 0.5}
    assert set(contents.tags) == {"fold 1/unskew.result"}
    assert all(name.startswith("unskew/fold 1/Scores/") for name in contents.files)


@pytest.mark.parametrize("log", [us.tracking.log_to_mlflow, us.tracking.log_to_wandb])
def test_other_things_are_refused(log):
    with pytest.raises(us.SettingError, match=r"result must be a result of unskew, .* got dict"):
        log({"P@1": 0.5})
    with pytest.raises(us.SettingError, match="prefix must be text, got 3"):
        log({}, prefix=3)


@pytest.mark.parametrize("package", ["mlflow", "wandb"])
def test_a_missing_package_is_named(package, scores, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, package, None)
    with pytest.raises(us.UnskewError, match=rf"pip install 'unskew\[{package}\]'"):
        getattr(us.tracking, f"log_to_{package}")(scores, report=False)


# The real packages


@needs("mlflow")
@pytest.mark.filterwarnings("default")
def test_mlflow_keeps_it(scores, tmp_path, monkeypatch):
    import mlflow

    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.chdir(tmp_path)
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    with pytest.raises(us.SettingError, match="no run of MLflow is active"):
        us.tracking.log_to_mlflow(scores)
    with mlflow.start_run() as run:
        tracked = us.tracking.log_to_mlflow(scores)
    other = us.tracking.log_to_mlflow(scores, run_id=run.info.run_id, prefix="again", report=False)
    assert tracked.run_id == other.run_id == run.info.run_id
    data = mlflow.get_run(run.info.run_id).data
    assert {name: data.metrics[name] for name in tracked.metrics} == contents_of(scores).metrics
    assert data.metrics["again/mine/P_at_1"] == 1.0
    assert data.tags["unskew.result"] == "Scores"
    folder = Path(mlflow.artifacts.download_artifacts(run_id=run.info.run_id))
    for name, content in contents_of(scores).files.items():
        assert (folder / name).read_bytes() == content
    assert not (folder / "unskew/again/Scores/report.html").exists()


@needs("wandb")
@pytest.mark.filterwarnings("default")
def test_wandb_keeps_it_offline(scores, tmp_path, monkeypatch):
    import wandb

    monkeypatch.chdir(tmp_path)
    for name in ("WANDB_DIR", "WANDB_CACHE_DIR", "WANDB_DATA_DIR", "WANDB_ARTIFACT_DIR"):
        monkeypatch.setenv(name, str(tmp_path))
    with pytest.raises(us.SettingError, match="no run of Weights & Biases is active"):
        us.tracking.log_to_wandb(scores)
    with pytest.raises(us.SettingError, match=r"run must be what wandb\.init gives, got int"):
        us.tracking.log_to_wandb(scores, run=3)
    staged, log_artifact = [], wandb.Run.log_artifact

    def seen(run, artifact):
        entries = artifact.manifest.entries.items()
        staged.append({name: Path(one.local_path).read_bytes() for name, one in entries})
        return log_artifact(run, artifact)

    monkeypatch.setattr(wandb.Run, "log_artifact", seen)
    with wandb.init(project="unskew", mode="offline", dir=str(tmp_path)) as run:
        tracked = us.tracking.log_to_wandb(scores)
        again = us.tracking.log_to_wandb(scores, run=run, prefix="again", report=False)
        kept = dict(run.summary)
    assert tracked.run_id == again.run_id == run.id
    assert {name: kept[name] for name in tracked.metrics} == contents_of(scores).metrics
    assert kept["unskew.result"] == "Scores"
    assert [set(one) for one in staged] == [set(tracked.files), set(again.files)]
    assert staged[0] == contents_of(scores).files
    names = (b"unskew-Scores", b"unskew-again-Scores")
    for _ in range(100):  # the service behind wandb writes its log when it finds time
        logs = b"".join(path.read_bytes() for path in tmp_path.rglob("*.wandb"))
        if all(name in logs for name in names):
            break
        time.sleep(0.2)
    assert all(name in logs for name in names)
