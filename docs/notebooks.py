"""Execute docs/notebooks/*.ipynb anew (make notebooks), and turn them into pages of the site."""

import json
import re
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).with_suffix("")
LIVE = "application/vnd.vegalite"
"""Charts that need a script: the still picture beside them is kept."""


def notebooks() -> list[Path]:
    """Return the notebooks."""
    return sorted(FOLDER.glob("*.ipynb"))


def executed(path: Path) -> dict[str, Any]:
    """Return a notebook with the outputs of a run in a new kernel; needs unskew[notebooks]."""
    import nbformat
    from nbclient import NotebookClient

    book = nbformat.read(path, as_version=4)
    NotebookClient(book, timeout=600, kernel_name="python3").execute()
    return cleaned(json.loads(nbformat.writes(book)))


def cleaned(book: dict[str, Any]) -> dict[str, Any]:
    """Return a notebook without what differs from run to run: times, hosts, bars that are gone."""
    for cell in book["cells"]:
        cell["metadata"] = {}
        if cell["cell_type"] == "code":
            cell["outputs"] = joined([kept(one) for one in cell["outputs"] if not is_bar(one)])
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    book["metadata"] = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return book


def is_bar(output: dict[str, Any]) -> bool:
    """Tell whether an output is the place of a progress bar."""
    shown = "".join(output.get("data", {}).get("text/html", "x"))
    return shown == "" or "unskew-progress" in shown


def kept(output: dict[str, Any]) -> dict[str, Any]:
    """Return an output without its live charts and without metadata."""
    if "data" in output:
        output["data"] = {k: v for k, v in output["data"].items() if not k.startswith(LIVE)}
        output["metadata"] = {}
    return output


def joined(outputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return outputs with what was printed in a row as one: a kernel cuts it by its own clock."""
    whole: list[dict[str, Any]] = []
    for one in outputs:
        before = whole[-1] if whole else {}
        if one["output_type"] == "stream" and before.get("name") == one["name"]:
            before["text"] = [*_lines(before["text"]), *_lines(one["text"])]
        else:
            whole.append(one)
    return whole


def _lines(text: str | list[str]) -> list[str]:
    return "".join(text).splitlines(keepends=True)


def text_of(output: dict[str, Any]) -> str:
    """Return what people read of an output: text, or HTML without its style and pictures."""
    data = output.get("data", {})
    text = "".join(output.get("text", data.get("text/html", data.get("text/plain", ""))))
    return re.sub(r'<style>.*?</style>|src="data:[^"]*"', "", text, flags=re.S)


def page(book: dict[str, Any], name: str) -> str:
    """Return a notebook as Markdown for the site."""
    parts = []
    for cell in book["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        parts += map(_shown, cell["outputs"])
    link = f"This page is the notebook `docs/notebooks/{name}.ipynb`, executed."
    return "\n\n".join([*parts, link]) + "\n"


def _shown(output: dict[str, Any]) -> str:
    data = output.get("data", {})
    for kind in ("text/html", "image/svg+xml"):
        if kind in data:
            # A blank line would end a block of raw HTML in some readers.
            lines = "".join(data[kind]).splitlines()
            return "```{raw} html\n" + "\n".join(line for line in lines if line.strip()) + "\n```"
    text = "".join(output.get("text", data.get("text/plain", "")))
    return f"```text\n{text.rstrip()}\n```"


if __name__ == "__main__":
    for path in notebooks():
        path.write_text(json.dumps(executed(path), indent=1, ensure_ascii=False) + "\n")
        print(path.name, f"{path.stat().st_size:,} bytes")
