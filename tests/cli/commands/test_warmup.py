"""`unskew warmup`: what it compiles, later commands find."""

from shared.commands import invoke
from unskew.auditing import compile_ahead
from unskew.engine import compiled
from unskew.engine.compiled import Kernel


def test_kernels_are_ready_and_counted(monkeypatch):
    from unskew.metrics.kernels.lists import walk

    monkeypatch.setattr(Kernel, "walked", 0)
    done = invoke("warmup")
    assert done.exit_code == 0
    assert " kernels ready in " in done.output
    assert "kept under" in done.output
    assert compiled.is_compiled(walk)
    assert Kernel.walked > compiled.PLAIN_COLD, "Python would run kernels on little data"


def test_all_is_more_and_quiet_is_silent(monkeypatch):
    done = []
    monkeypatch.setattr(compile_ahead, "compile_evaluation", lambda: done.append("evaluation"))
    monkeypatch.setattr(compile_ahead, "compile_all", lambda: done.append("all"))
    assert invoke("warmup", "-q").output == ""
    assert done == ["evaluation"]
    invoke("warmup", "--all")
    assert done == ["evaluation", "evaluation", "all"]


def test_kernels_that_are_kept_nowhere_are_named(monkeypatch):
    monkeypatch.setattr(compile_ahead, "compile_evaluation", lambda: None)
    monkeypatch.setattr(compiled, "compiled_kernels", lambda: {"": {"walk", "meet"}})
    assert "2 kernels kept nowhere: each process compiles again" in invoke("warmup").output
