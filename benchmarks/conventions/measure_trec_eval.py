"""trec_eval's own code, through the binding pytrec_eval-terrier."""

from importlib.metadata import version

import pytrec_eval
from fixtures import CUTOFFS, liked_only
from record import Record

CUT = ("P", "recall", "map_cut", "ndcg_cut", "success", "relative_P")
WHOLE = (
    "map",
    "gm_map",
    "ndcg",
    "ndcg_rel",
    "Rndcg",
    "recip_rank",
    "bpref",
    "gm_bpref",
    "infAP",
    "Rprec",
    "11pt_avg",
    "set_P",
    "set_recall",
    "set_relative_P",
    "set_F",
    "set_map",
    "G",
    "binG",
    "utility",
)
MEASURES = {*WHOLE, *(f"{name}.{','.join(map(str, CUTOFFS))}" for name in CUT)}


def as_text(values, convert):
    return {u: {str(i): convert(v) for i, v in row.items()} for u, row in values.items()}


def zeros_and_ones(judgments, threshold):
    return {
        u: {str(i): int(r >= threshold) for i, r in row.items()} for u, row in judgments.items()
    }


def main():
    record = Record("trec_eval", "trec_eval", version("pytrec_eval-terrier"))
    for fixture, data in record.fixtures.items():
        if fixture == "twice":  # a run is a dictionary: an item cannot occur twice
            continue
        judgments, threshold = data["judgments"], data["threshold"]
        scores = as_text(data["scores"], float)
        ones = as_text(liked_only(judgments, threshold), lambda _: 1)
        handed = [
            ("whole part of ratings as grades, level 4", as_text(judgments, int), 4, [False, True]),
            ("whole part of ratings as grades, level 1", as_text(judgments, int), 1, [False]),
            ("grades 0 and 1", zeros_and_ones(judgments, threshold), 1, [False]),
            ("liked only, grade 1", ones, 1, [False]),
        ]
        for given, qrels, level, flags in handed:
            for flag in flags:
                evaluator = pytrec_eval.RelevanceEvaluator(
                    qrels, MEASURES, relevance_level=level, judged_docs_only_flag=flag
                )
                per_user = evaluator.evaluate(scores)
                for name in sorted(next(iter(per_user.values()))):
                    values = {user: row[name] for user, row in per_user.items()}
                    mean = pytrec_eval.compute_aggregated_measure(name, list(values.values()))
                    last = name.rsplit("_", 1)[-1]
                    k = int(last) if last.isdigit() else None
                    option = "judged_docs_only_flag=True" if flag else ""
                    record.add(fixture, given, name, k, mean, option, values)
    record.save()


main()
