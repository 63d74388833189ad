"""RecBole: its collector and metrics, on a tensor of scores of all items.

Only its evaluator is run, with stand-ins for the package and its `utils`, which would load every
model. RecBole ranks every item, so a list is handed over as scores: twenty items that nobody judged
follow the list (no cutoff reaches below them). Users without a test item are not evaluated.
"""

import sys
import types
from importlib import import_module
from importlib.metadata import distribution, version
from importlib.util import module_from_spec, spec_from_file_location

import numpy as np
import torch
from fixtures import CUTOFFS, liked_only
from record import Record

METRICS = ["Hit", "MRR", "MAP", "Recall", "NDCG", "Precision", "GAUC"]
ITEMS = 140
FILLED = range(121, 141)


def evaluator_modules():
    home = distribution("recbole").locate_file("recbole")
    for name in ("recbole", "recbole.evaluator"):
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__path__ = [str(home / name.replace("recbole", "").lstrip("."))]
    kinds = spec_from_file_location("recbole.utils", home / "utils" / "enum_type.py")
    sys.modules["recbole.utils"] = module_from_spec(kinds)
    kinds.loader.exec_module(sys.modules["recbole.utils"])
    for name, kind in (("float", np.float64), ("bool", np.bool_)):  # as its configurator does
        setattr(np, name, kind)

    import_module("recbole.evaluator.metrics")  # first: the others look it up
    collector = import_module("recbole.evaluator.collector")
    evaluator = import_module("recbole.evaluator.evaluator")
    return collector.Collector, evaluator.Evaluator


def main():
    collector, evaluator = evaluator_modules()
    record = Record("RecBole", "recbole", version("recbole"))
    config = {
        "metrics": METRICS,
        "topk": list(CUTOFFS),
        "metric_decimal_place": 17,
        "eval_args": {"mode": "full"},
        "device": torch.device("cpu"),
    }
    for name in ("small", "stars", "clean", "tied"):  # a tensor of scores holds no item twice
        data = record.fixtures[name]
        liked = liked_only(data["judgments"], data["threshold"])
        for given, judged in (("liked only", liked), ("all judgments", data["judgments"])):
            users = sorted(judged)
            scores = -1000.0 - torch.arange(ITEMS + 1).repeat(len(users), 1)
            scores[:, FILLED] += 800
            for row, user in enumerate(users):
                for item, score in data["scores"].get(user, {}).items():
                    scores[row, item] = score
            scores[:, 0] = -np.inf  # its padding
            pairs = [(row, item) for row, user in enumerate(users) for item in judged[user]]
            rows, items = torch.tensor(pairs).T
            collect = collector(config)
            collect.eval_batch_collect(scores, None, rows, items)
            values = evaluator(config).evaluate(collect.get_data_struct())
            ties = ", equal scores" if name == "tied" else ""
            for metric in METRICS:
                if metric == "GAUC":
                    record.add(name, given + ties, "gauc", None, values["gauc"])
                    continue
                for k in CUTOFFS:
                    place = f"{metric.lower()}@{k}"
                    record.add(name, given + ties, place, k, values[place])
    record.save()


if __name__ == "__main__":
    main()
