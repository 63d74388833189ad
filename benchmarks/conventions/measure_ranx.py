"""ranx."""

from importlib.metadata import version

from fixtures import CUTOFFS, liked_only
from ranx import Qrels, Run, evaluate
from record import Record

CUT = (
    "hits",
    "hit_rate",
    "precision",
    "recall",
    "f1",
    "mrr",
    "map",
    "dcg",
    "dcg_burges",
    "ndcg",
    "ndcg_burges",
)
WHOLE = (*CUT, "r-precision", "bpref", "rbp.80")


def as_text(values, convert):
    return {u: {str(i): convert(v) for i, v in row.items()} for u, row in values.items()}


def zeros_and_ones(judgments, threshold):
    return {
        u: {str(i): int(r >= threshold) for i, r in row.items()} for u, row in judgments.items()
    }


def main():
    record = Record("ranx", "ranx", version("ranx"))
    for fixture, data in record.fixtures.items():
        if fixture == "twice":  # a run is a dictionary: an item cannot occur twice
            continue
        judgments, threshold = data["judgments"], data["threshold"]
        grades = as_text(judgments, int)
        ones = as_text(liked_only(judgments, threshold), lambda _: 1)
        handed = [
            ("whole part of ratings as grades", grades, ""),
            ("whole part of ratings as grades", grades, f"-l{threshold}"),
            ("grades 0 and 1", zeros_and_ones(judgments, threshold), ""),
            ("liked only, grade 1", ones, ""),
        ]
        for given, qrels, level in handed:
            wanted = [(name, None) for name in WHOLE]
            wanted += [(f"{name}@{k}", k) for name in CUT for k in CUTOFFS]
            run = Run(as_text(data["scores"], float)).make_comparable(Qrels(qrels))
            means = evaluate(Qrels(qrels), run, [name + level for name, _ in wanted])
            for name, k in wanted:
                per_user = dict(run.scores[name + level])
                record.add(fixture, given, name, k, means[name + level], level, per_user)
    record.save()


main()
