"""The page on clusters: what it says to type runs, and what it hands to others has one thread."""

import ast
import itertools
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from shared import ROOT

PAGE = (ROOT / "docs" / "cluster.md").read_text()
WAIT = 180.0
PLAN = """
metrics = ["P@5"]
seed = 3

[data]
file = "ratings.csv"

[relevance]
liked = 4

[[split]]
protocol = "random"
test = 0.3

[[targets]]
design = "all-items"

[[algorithm]]
name = "popularity"

[[algorithm]]
name = "random"
"""


def section(title):
    return re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S)[1]


def call_of(title, name, space):
    """Return the value of a call in the code of a section, as the page writes it."""
    (code,) = re.findall(r"```py\n(.*?)```", section(title), re.S)
    (call,) = [
        node
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == name
    ]
    return eval(compile(ast.Expression(call), "page", "eval"), space)


@pytest.mark.filterwarnings("ignore")
def test_the_job_of_slurm_has_workers_of_one_thread():
    jobqueue = pytest.importorskip("dask_jobqueue", reason="pip install '.[remote-tests]'")
    with call_of("SLURM", "SLURMCluster", {"SLURMCluster": jobqueue.SLURMCluster}) as cluster:
        script = cluster.job_script()
    words = shlex.split(script.splitlines()[-1])
    given = dict(itertools.pairwise(words))
    assert (given["--nthreads"], given["--nworkers"]) == ("1", "16")
    assert (given["--local-directory"], given["--lifetime"]) == ("/tmp", "225m")
    assert "#SBATCH --cpus-per-task=16" in script
    assert "#SBATCH -t 04:00:00" in script
    assert script.index("export NUMBA_CACHE_DIR=/tmp/") < script.index("dask_worker")


@pytest.mark.filterwarnings("ignore")
def test_the_pods_of_kubernetes_have_workers_of_one_thread():
    operator = pytest.importorskip(
        "dask_kubernetes.operator", reason="pip install '.[remote-tests]'"
    )
    space = {"make_cluster_spec": operator.make_cluster_spec}
    spec = call_of("Kubernetes", "make_cluster_spec", space)
    worker = spec["spec"]["worker"]
    (container,) = worker["spec"]["containers"]
    assert (spec["kind"], worker["replicas"]) == ("DaskCluster", 16)
    assert container["args"][:4] == ["dask", "worker", "--nthreads", "1"]
    assert {"name": "NUMBA_CACHE_DIR", "value": "/scratch/numba-cache"} in container["env"]
    assert container["resources"]["limits"] == {"memory": "4Gi"}


# Two machines: folders of their own, and where that is allowed they do not see each other's


class Machines:
    """Processes that stand for machines, and what was typed on each."""

    def __init__(self, home):
        self.home, self.port = home, free_port()
        self.processes, self.variables = [], {}
        for name in ("you", "one", "two"):
            (home / name).mkdir()
            self.variables[name] = {}

    def adapted(self, line, number):
        """Return a line of the page with addresses, ports, folders and sizes of this machine."""
        first = self.port + 20 + 10 * number
        for old, new in (
            ("10.0.0.1", "127.0.0.1"),
            ("8786", str(self.port)),
            ("--nworkers 16", "--nworkers 1"),
            ("3.5GiB", "1GiB"),
            ("9000:9015", f"{first}:{first + 2}"),
            ("9100:9115", f"{first + 3}:{first + 5}"),
            ("/var/tmp/", f"{self.home}/{('one', 'two', 'you')[number]}/"),
        ):
            line = line.replace(old, new)
        return line

    def type(self, machine, line, wait=False):
        """Type a line on a machine; wait until it has ended, or let it run."""
        words = shlex.split(line)
        if words[0] == "export":
            name, _, value = words[1].partition("=")
            self.variables[machine][name] = value
            return None
        programs = {
            "dask": [sys.executable, "-m", "dask"],
            "unskew": [sys.executable, "-m", "unskew"],
            "openssl": ["openssl"],
        }
        command = [*programs[words[0]], *words[1:]]
        if machine != "you" and can_hide():
            hide = f"mount -t tmpfs none {self.home / 'you'} && exec {shlex.join(command)}"
            command = ["unshare", "-m", "sh", "-c", hide]
        with (self.home / f"{machine}.log").open("ab") as log:
            process = subprocess.Popen(
                command,
                cwd=self.home / machine,
                env={**os.environ, **self.variables[machine]},
                stdout=log,
                stderr=log,
            )
        if not wait:
            self.processes.append(process)
        elif process.wait(WAIT):
            pytest.fail(f"{line}\n{(self.home / f'{machine}.log').read_text()[-3000:]}")
        return process

    def stop(self):
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(20)


def can_hide():
    """Tell whether a process may have its own view of the file system."""
    if os.geteuid() or shutil.which("unshare") is None:
        return False
    return subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode == 0


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def until_open(port):
    begun = time.monotonic()
    while time.monotonic() - begun < WAIT:
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    pytest.fail("no scheduler")


def contents(store):
    """Return the files of a store by their names."""
    files = (path for path in store.rglob("*.result") if path.is_file())
    return {str(path.relative_to(store)): path.read_bytes() for path in files}


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 1], ids=["plain", "with certificates"])
def test_two_machines(tmp_path, number):
    blocks = re.findall(r"```\n(.*?)```", section("Two machines, or ten"), re.S)
    lines = [
        re.match(r"(host|each|you)\$ +(.*)", line).groups()
        for line in blocks[1 + number].splitlines()
    ]
    if number and shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    machines = Machines(tmp_path)
    ratings = [
        "user,item,rating",
        *(f"{u},{i},{(u * i) % 5 + 1}" for u in range(40) for i in range(20) if (u + i) % 3),
    ]
    (tmp_path / "you" / "ratings.csv").write_text("\n".join(ratings) + "\n")
    (tmp_path / "you" / "plan.toml").write_text(PLAN)
    try:
        for where, line in lines:
            if where == "host":
                ends = line.startswith("openssl")
                machines.type("one", machines.adapted(line, 0), wait=ends)
                if ends:
                    for other in ("two", "you"):
                        for name in ("cert.pem", "key.pem"):
                            shutil.copy(tmp_path / "one" / name, tmp_path / other / name)
                else:
                    until_open(machines.port)
            elif where == "each":
                for at, machine in enumerate(("one", "two")):
                    machines.type(machine, machines.adapted(line, at))
            else:
                machines.type("you", machines.adapted(line, 2), wait=True)
    finally:
        machines.stop()
    alone = "unskew run plan.toml --store alone"
    machines.type("you", alone, wait=True)
    results = contents(tmp_path / "you" / "results")
    assert results == contents(tmp_path / "you" / "alone")
    assert len(results) >= 2
    for machine in ("one", "two"):
        assert "Registered to:" in (tmp_path / f"{machine}.log").read_text()
        if not number:
            assert Path(machines.variables[machine]["NUMBA_CACHE_DIR"]).is_dir()
