"""WarpRec: its metrics, on a tensor of scores of all items and one of test ratings.

Only its metric modules are run, with stand-ins for the packages around them, which would load every
model. WarpRec ranks every item, so a list is handed over as scores: twenty items that nobody judged
follow the list (no cutoff reaches below them). The mean is the one it prints, over users with a
value. It computes in single precision; here it is run in double, so that digits can be compared.
"""

import sys
import types
from importlib.metadata import distribution, version

import torch
from fixtures import CUTOFFS, liked_only
from record import Record

AT_K = (
    "Precision",
    "Recall",
    "F1",
    "nDCG",
    "nDCGRendle2020",
    "MRR",
    "MAP",
    "MAR",
    "HitRate",
    "LAUC",
)
ITEMS = 140
FILLED = range(121, 141)


def metric_registry():
    home = distribution("warprec").locate_file("warprec")
    for name in ("warprec", "warprec.utils", "warprec.evaluation", "warprec.evaluation.metrics"):
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__path__ = [str(home.joinpath(*name.split(".")[1:]))]
    import warprec.evaluation.metrics.accuracy  # noqa: F401 (registers the metrics)
    from warprec.utils.registry import metric_registry as registry

    return registry


def main():
    torch.set_default_dtype(torch.float64)
    torch.Tensor.float = torch.Tensor.double
    registry = metric_registry()
    record = Record("WarpRec", "warprec", version("warprec"))
    for name in ("small", "stars", "clean"):  # it breaks ties at random; no item comes twice
        data = record.fixtures[name]
        users = sorted(set(data["judgments"]) | set(data["lists"]))
        scores = -1000.0 - torch.arange(ITEMS + 1.0).repeat(len(users), 1)
        scores[:, FILLED] += 800
        for row, user in enumerate(users):
            for item, score in data["scores"].get(user, {}).items():
                scores[row, item] = score
        liked = liked_only(data["judgments"], data["threshold"])
        ones = {user: dict.fromkeys(items, 1) for user, items in liked.items()}
        for given, judged in (
            ("liked only, as ones", ones),
            ("liked only, as ratings", liked),
            ("all judgments, as ratings", data["judgments"]),
        ):
            truth = torch.zeros_like(scores)
            for row, user in enumerate(users):
                for item, rating in judged.get(user, {}).items():
                    truth[row, item] = rating
            sizes = {"num_users": len(users), "num_items": ITEMS + 1}
            for metric in ("AUC", "GAUC"):
                instance = registry.get(metric, **sizes)
                instance.update(scores, user_indices=torch.arange(len(users)), ground=truth)
                (value,) = instance.compute().values()
                record.add(name, given, metric, None, torch.as_tensor(value).nanmean())
            for metric in AT_K:
                for k in CUTOFFS:
                    instance = registry.get(metric, k=k, **sizes)
                    instance.update(scores, user_indices=torch.arange(len(users)), ground=truth)
                    (values,) = instance.compute().values()
                    per_user = {
                        user: value
                        for user, value in zip(users, values.tolist(), strict=True)
                        if value == value
                    }
                    place = f"{metric}@{k}"
                    record.add(name, given, place, k, values.nanmean(), per_user=per_user)
    record.save()


if __name__ == "__main__":
    main()
