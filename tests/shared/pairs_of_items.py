"""What `item_pairs` gives, by name: as rated, and by the truth."""

from types import SimpleNamespace


def numbers(es):
    """Return the values of quantities; NaN where there is none."""
    return {name: es.row(quantity=name).estimate[0] for name in es.values_of("quantity")}


def _by_case(es, quantity):
    rows = es.where(quantity=quantity).rows
    return dict(zip(rows["case"].to_list(), rows["value"].to_list(), strict=True))


def _of(cases, overall, **more):
    values = numbers(overall)
    steeper = {name: values[f"steeper_{name}"] for name in ("relevance", "non-relevance", "both")}
    shares = {"cases": _by_case(cases, "share"), "cases_strict": _by_case(cases, "strict")}
    return SimpleNamespace(**{**values, **shares, "steeper": steeper, **more})


def observed(pairs):
    return _of(pairs, pairs.parts["overall"])


def true(pairs):
    overall = pairs.parts["true overall"]
    values = numbers(overall)
    consistent = {name: values[name] for name in ("P", "anti-P")}
    lemma3 = {name: values[f"lemma3_{name}"] for name in ("P", "anti-P")}
    return _of(pairs.parts["true"], overall, consistent=consistent, lemma3=lemma3)


def family(pairs):
    return pairs.card["verdict"]["family"]
