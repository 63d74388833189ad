"""How often what an audit says is false, in worlds whose truth is known.

    python benchmarks/reliability/run.py [--worlds 80] [--kinds null,tiny] [--workers 2]
        [--store build/reliability] [-o rates.json] [--quiet]

Without --worlds, the mix of worlds is the one behind the rates that reports show. With --store, a
run that was stopped goes on. Kinds of worlds that need real data are left out where UNSKEW_DATA
does not hold them. `make reliability` writes the rates that the package ships.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from reliability.kinds import at_hand
from reliability.measure import reliability
from unskew.cli import outputs
from unskew.cli.inputs import between_commas
from unskew.cli.progress import Stage, stages_progress

WORLDS = {"worlds": Stage("audits of simulated worlds", 1, "worlds")}


def main(words: list[str] | None = None) -> None:
    """Audit simulated worlds; print how often statements are false, and write the rates."""
    options = _options(words)
    kinds, reasons = between_commas(options.kinds), []
    if kinds is None:
        kinds, reasons = at_hand()
    for reason in reasons:
        print(reason, file=sys.stderr)
    number = {} if options.worlds is None else {"worlds": options.worlds, "least": 0}
    with stages_progress(options.quiet, WORLDS, tuple(WORLDS)) as move:
        result = reliability(
            **number,
            kinds=kinds,
            store=options.store,
            workers=options.workers,
            progress=move,
        )
    outputs.Printout.of_result(result).show("table", options.quiet)
    if options.output is not None:
        result.save_rates(options.output)
        print(f"the rates are in {options.output}")


def _options(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worlds", type=int, help="how many, equally many of each kind")
    parser.add_argument("--kinds", help="kinds of worlds, separated by commas; default: all")
    parser.add_argument("--workers", type=int, default=1, help="processes side by side")
    parser.add_argument("--store", type=Path, help="folder that keeps finished worlds")
    parser.add_argument("-o", "--output", type=Path, help="JSON file for the rates")
    parser.add_argument("--quiet", action="store_true", help="print no progress")
    return parser.parse_args(words)


if __name__ == "__main__":
    main()
