"""What tests of studies read off claims and results."""


def verdicts(result, kind=None):
    """Return the verdicts by claim, of all evidence or of one kind."""
    return {one.claim.key: one for one in result.verdicts if kind in (None, one.evidence.kind)}


def datasets_of(claim):
    """Return the data sets of the paper that a claim is checked on."""
    return {name for piece in claim.evidence for name in piece.data}
