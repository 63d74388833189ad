"""ir_measures with what it installs: trec_eval, MS MARCO's RR, gdeval (needs perl) and its own."""

from importlib.metadata import version

import ir_measures
from fixtures import CUTOFFS, liked_only
from record import Record

CUT = ("P", "R", "AP", "RR", "Success")
WHOLE = ("AP", "RR", "Rprec", "Bpref", "infAP", "SetP", "SetR", "SetF", "SetAP", "Accuracy")


def names(level, judged_only):
    """Yield the measure as ir_measures reads it, and its name, option and cutoff."""
    options = [f"rel={level}"] if level else []
    options += ["judged_only=True"] if judged_only else []
    for name in CUT:
        if not (judged_only and name == "RR"):
            for k in CUTOFFS:
                yield f"{name}({','.join(options)})@{k}", f"{name}@{k}", ",".join(options), k
    for name in WHOLE:
        if not (judged_only and name in ("Bpref", "infAP", "SetR", "Accuracy")):
            yield f"{name}({','.join(options)})", name, ",".join(options), None


def grades_alone(gains):
    """Yield measures that know no relevance level."""
    for option in ("", "judged_only=True", *gains):
        yield from ((f"nDCG({option})@{k}", f"nDCG@{k}", option, k) for k in CUTOFFS)
        yield f"nDCG({option})", "nDCG", option, None
    yield from ((f"Judged@{k}", f"Judged@{k}", "", k) for k in CUTOFFS)


def gdeval():
    """Yield the measures of gdeval, which knows grades up to 4."""
    for k in CUTOFFS:
        yield f"nDCG(dcg='exp-log2')@{k}", f"nDCG@{k}", "dcg='exp-log2'", k
        yield f"ERR@{k}", f"ERR@{k}", "", k


def as_text(values, convert):
    return {u: {str(i): convert(v) for i, v in row.items()} for u, row in values.items()}


def numbered(values):
    """Return values with users named by their number: gdeval reads digits only."""
    return {user.lstrip("u0"): row for user, row in values.items()}


def above(judgments, low):
    return {
        u: {str(i): max(int(r) - low, 0) for i, r in row.items()} for u, row in judgments.items()
    }


def main():
    record = Record("ir_measures", "ir_measures", version("ir_measures"))
    for fixture, data in record.fixtures.items():
        if fixture == "twice":  # a run is a dictionary: an item cannot occur twice
            continue
        judgments, threshold = data["judgments"], data["threshold"]
        scores = as_text(data["scores"], float)
        grades = as_text(judgments, int)
        ones = as_text(liked_only(judgments, threshold), lambda _: 1)
        liked_gains = ("gains={0:0,1:0,2:0,3:0}", "gains={0:0,1:0,2:0,3:0,4:1,5:1}")
        handed = [
            ("whole part of ratings as grades", grades, names(threshold, False)),
            ("whole part of ratings as grades", grades, names(threshold, True)),
            ("whole part of ratings as grades", grades, names(None, False)),
            ("whole part of ratings as grades", grades, grades_alone(liked_gains)),
            ("liked only, grade 1", ones, names(None, False)),
            ("liked only, grade 1", ones, grades_alone(())),
        ]
        if fixture != "stars":
            levels = above(judgments, threshold - 1)
            handed.append(("grade rating - threshold + 1 if liked, else 0", levels, gdeval()))
        for given, qrels, wanted in handed:
            named = numbered if given.startswith("grade rating") else dict
            for text, name, option, k in wanted:
                measure = ir_measures.parse_measure(text.replace("()", ""))
                mean = ir_measures.calc_aggregate([measure], named(qrels), named(scores))[measure]
                per_user = {
                    row.query_id: row.value
                    for row in ir_measures.iter_calc([measure], named(qrels), named(scores))
                }
                record.add(fixture, given, name, k, mean, option, per_user)
    record.save()


main()
