"""unskew against its peers: ratios measured in one run, each peer in an environment of its own.

make bench-peers            all of it (some minutes; makes .venv-peers-* at the first run)
python benchmarks/peers.py --skip-million
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

import sizes

HERE = Path(__file__).parent
ROOT = HERE.parent

# Pins that were run; RecTools needs an older numpy and pandas than everybody else.
ENVIRONMENTS = {
    "rectools": ["rectools==0.19.0", "numpy<2", "pandas<3", "pyarrow<20"],
    "ranx": ["ranx==0.3.21"],
    "trec": ["pytrec_eval-terrier==0.5.11", "numpy<3"],
}


def environment(name: str) -> Path:
    """Return the Python of a peer's environment; make it at first use."""
    home = ROOT / f".venv-peers-{name}"
    python = home / "bin" / "python"
    if not (home / ".ready").exists():
        print(f"making {home.name} …", flush=True)
        venv.create(home, with_pip=True, clear=True)
        install = [python, "-m", "pip", "install", "--quiet", *ENVIRONMENTS[name]]
        subprocess.run(install, check=True)
        (home / ".ready").touch()
    return python


def measure(python: Path | str, script: str, *arguments: object) -> dict:
    """Run a script of this folder in an environment and read the JSON it prints."""
    command = [str(python), "-W", "ignore", str(HERE / script), *map(str, arguments)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.strip().splitlines()[-1])


def main() -> None:
    """Measure all and print one table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--skip-million", action="store_true", help="leave out the largest size")
    skip = options.parse_args().skip_million
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        a = Path(folder) / "a.npz"
        sizes.save(sizes.size_a(), a)

        def compare(what: str, job: str, file: Path, peer: str, env: str, task: str, bar: int):
            python = environment(env)
            before = measure(sys.executable, "ours.py", job, file)
            theirs = measure(python, "peer_jobs.py", task, file)
            after = measure(sys.executable, "ours.py", job, file)
            ours = min(before, after, key=lambda times: times["best"])
            ratio = theirs["best"] / ours["best"]
            rows.append((what, peer, theirs["best"], ours["best"], ratio, bar))
            print(f"{what}: {peer} {theirs['best']:.3f} s, unskew {ours['best']:.3f} s, "
                  f"{ratio:.0f}x (bar {bar}x)", flush=True)  # fmt: skip
            return ours

        compare("21 systems, arrays to per-user values, 77 columns", "arrays", a,
                "pytrec_eval evaluate, 2 cutoffs", "trec", "pytrec", 50)  # fmt: skip
        compare("21 systems, arrays to means, 77 columns", "arrays-means", a,
                "ranx typed lists, 2 cutoffs", "ranx", "ranx", 20)  # fmt: skip
        compare("21 data frames in order, integer ids", "frames", a,
                "RecTools", "rectools", "rectools-frames", 30)  # fmt: skip
        compare("21 data frames shuffled, integer ids", "shuffled", a,
                "RecTools", "rectools", "rectools-shuffled", 5)  # fmt: skip
        compare("21 data frames in order, text ids", "text", a,
                "RecTools", "rectools", "rectools-text", 10)  # fmt: skip
        if not skip:
            c = Path(folder) / "c.npz"
            sizes.save(sizes.size_c(), c)
            ours = compare("1,000,000 users, 30 million judgments", "million", c,
                           "RecTools", "rectools", "rectools-million", 20)  # fmt: skip
            print(f"memory above the input: {ours['above_input_mib']:.0f} MiB (bar 2048)")
    print("\n| job | peer | peer s | unskew s | ratio | bar |\n|---|---|---:|---:|---:|---:|")
    for what, peer, theirs, mine, ratio, bar in rows:
        print(f"| {what} | {peer} | {theirs:.2f} | {mine:.3f} | {ratio:.0f}x | {bar}x |")
    if any(ratio < bar for *_, ratio, bar in rows):
        sys.exit("a bar was missed (is the machine idle?)")


if __name__ == "__main__":
    main()
