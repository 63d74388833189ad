"""A strict reader of the LaTeX that tables and methods are written as."""

import re

KNOWN = {
    *("begin", "end", "centering", "caption", "label", "toprule", "midrule", "bottomrule"),
    *("textbf", "underline", "dagger", "ddagger", "cite", "textbackslash", "textasciitilde"),
    *("textasciicircum", "textbar", "textasciigrave", "includegraphics", "columnwidth"),
    *("textwidth", "linewidth"),
}
"""Commands that documents with booktabs and graphicx know."""


def check_latex(text):
    """Check braces, environments, mathematics, commands and bare special signs."""
    body = re.sub(r"(?<!\\)%.*", "", text)
    depth, at, in_math, environments = 0, 0, False, []
    while at < len(body):
        sign = body[at]
        if sign == "\\":
            command = re.match(r"\\([A-Za-z]+|.)", body[at:], re.S)[1]
            if command[0].isalpha():
                assert command in KNOWN, command
                if command in ("begin", "end"):
                    name = re.match(r"\\(?:begin|end)\{(\w+\*?)\}", body[at:])[1]
                    if command == "begin":
                        environments.append(name)
                    else:
                        assert environments.pop() == name
            else:
                assert command in "&%$#_{}\\", command
            at += 1 + len(command)
            continue
        depth += (sign == "{") - (sign == "}")
        assert depth >= 0
        if sign == "$":
            in_math = not in_math
        assert sign not in "#~|`" or body[at : at + 6] == "~\\cite", sign
        assert sign not in "^_" or in_math or _is_key(body, at), body[max(0, at - 30) : at + 5]
        assert ord(sign) < 128, sign
        at += 1
    assert (depth, in_math, environments) == (0, False, [])


def _is_key(body, at):
    """Tell whether a place is inside of the key of a label, a citation or a file."""
    before = re.findall(r"\\(?:label|cite|includegraphics)(?:\[[^\]]*\])?\{[^}]*$", body[:at])
    return bool(before)


def columns_of(text):
    """Return how many columns a tabular declares, and how many cells each of its rows has."""
    declared = re.search(r"\\begin\{tabular\}\{([lrc]+)\}", text)[1]
    inside = text.partition("\\toprule")[2].partition("\\bottomrule")[0].replace("\\midrule", "")
    rows = [row for row in inside.split("\\\\\n") if row.strip()]
    return len(declared), [len(re.findall(r"(?<!\\)&", row)) + 1 for row in rows]
