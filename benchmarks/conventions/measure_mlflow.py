"""MLflow: ranking metrics of retrievers, on a row of lists for each user.

Only its metric module is run, with stand-ins for a setting and for a check of types whose modules
need much of the rest of the package.
"""

import sys
import types
from importlib.metadata import distribution, version

import pandas as pd
from fixtures import CUTOFFS, liked_only
from record import Record


def stand_in(name, **contents):
    """Put an empty module in the place of one that is not needed."""
    module = types.ModuleType(name)
    module.__dict__.update(contents)
    sys.modules[name] = module
    return module


def metric_module():
    home = distribution("mlflow").locate_file("mlflow")
    stand_in("mlflow").__path__ = [str(home)]
    stand_in("mlflow.metrics").__path__ = [str(home / "metrics")]
    stand_in("mlflow.environment_variables", _MLFLOW_TESTING=None)
    stand_in("mlflow.utils").__path__ = []
    stand_in("mlflow.utils.validation", _is_numeric=lambda value: isinstance(value, float | int))
    from mlflow.metrics import metric_definitions

    return metric_definitions


def main():
    metrics = metric_module()
    record = Record("MLflow", "mlflow", version("mlflow"))
    for name, data in record.fixtures.items():
        liked = liked_only(data["judgments"], data["threshold"])
        users = sorted(set(data["judgments"]) | set(data["lists"]))
        targets = pd.Series([[str(item) for item in liked.get(user, ())] for user in users])
        lists = pd.Series([[str(i) for i in data["lists"].get(user, ())] for user in users])
        for metric in ("precision_at_k", "recall_at_k", "ndcg_at_k"):
            for k in CUTOFFS:
                result = getattr(metrics, f"_{metric}_eval_fn")(k)(lists, targets)
                record.add(
                    name,
                    "a row for every user, liked items as targets",
                    metric.replace("_k", f"_{k}"),
                    k,
                    result.aggregate_results["mean"],
                    per_user=dict(zip(users, result.scores, strict=True)),
                )
    record.save()


if __name__ == "__main__":
    main()
