"""The five papers, run again: their tables and figures beside ours, a verdict on every claim.

`paper` has what a study is written in (Study, Exhibit, Claim, Evidence), `claims` reads the claims
of a paper, `rules` says which values agree with a claim; `lab` has what a study works on, `run` the
entry, `result` the ledger and the page. `presets` has the papers' systems with their settings,
`librec` those that copy LibRec; `command_run` and `command_list` are the commands of
`unskew study`.

Every paper has the same files; one that would be empty is left out:

- `study`: the study: data, amounts, title
- `claims.toml`: the claims, each with its evidence: the check and the rule
- `checks`: a function per claim: the lab's tables in, a measured value out
- `measurements`: the tables: what is run and measured on data
- `printed`: the numbers that the paper prints
- `exhibits`: its tables and figures again

A module that would be too long is split by the subjects of the paper: `checks_lemmas` has the
checks of lemmas, and the module without a suffix has what they share.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

__version__ = "0.2.0"
