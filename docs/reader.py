"""Where would a newcomer look? Draw functions at random: python docs/reader.py [--answers].

Prints the name and the first sentence of each function, drawn with a fixed seed. Write down the
file where you would look first, then ask for the answers.
"""

from __future__ import annotations

import ast
import random
import sys
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "unskew"
FUNCTIONS, SEED = 20, 39


def functions() -> list[tuple[str, str, str]]:
    """Return file, name and first sentence of every function on top of a module."""
    result = []
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and (text := ast.get_docstring(node)):
                file = path.relative_to(SOURCE).as_posix()
                result.append((file, node.name, text.splitlines()[0]))
    return result


def main() -> None:
    """Print the functions that were drawn, with their files where these are asked for."""
    sample = random.Random(SEED).sample(functions(), FUNCTIONS)
    for number, (file, name, sentence) in enumerate(sample, 1):
        answer = f"  [{file}]" if "--answers" in sys.argv[1:] else ""
        print(f"{number:2}. {name}: {sentence}{answer}")


if __name__ == "__main__":
    main()
