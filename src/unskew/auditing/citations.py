"""The papers that an audit stands on, as BibTeX."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unskew.auditing.designs import SOURCES

if TYPE_CHECKING:
    from unskew.auditing.measurements import Measurements

PAPERS = {
    "bellogin2017": """@article{bellogin2017,
  author  = {Bellog{\\'i}n, Alejandro and Castells, Pablo and Cantador, Iv{\\'a}n},
  title   = {Statistical Biases in Information Retrieval Metrics for Recommender Systems},
  journal = {Information Retrieval Journal}, year = {2017}, volume = {20}, number = {6},
  pages   = {606--634}, doi = {10.1007/s10791-017-9312-z}
}""",
    "valcarce2018": """@inproceedings{valcarce2018,
  author    = {Valcarce, Daniel and Bellog{\\'i}n, Alejandro and Parapar, Javier and Castells,
               Pablo},
  title     = {On the Robustness and Discriminative Power of Information Retrieval Metrics for
               Top-{N} Recommendation},
  booktitle = {Proceedings of the 12th ACM Conference on Recommender Systems}, year = {2018},
  pages     = {260--268}, doi = {10.1145/3240323.3240347}
}""",
    "castells2018": """@inproceedings{castells2018,
  author    = {Castells, Pablo and Ca{\\~n}amares, Roc{\\'i}o},
  title     = {Characterization of Fair Experiments for Recommender System Evaluation: A Formal
               Analysis},
  booktitle = {REVEAL Workshop at the 12th ACM Conference on Recommender Systems}, year = {2018}
}""",
    "carraro2020": """@inproceedings{carraro2020,
  author    = {Carraro, Diego and Bridge, Derek},
  title     = {Debiased Offline Evaluation of Recommender Systems: A Weighted-Sampling Approach},
  booktitle = {Proceedings of the 35th Annual ACM Symposium on Applied Computing}, year = {2020},
  pages     = {1435--1442}, doi = {10.1145/3341105.3375759}
}""",
    "mena2021": """@article{mena2021,
  author  = {Mena-Maldonado, Elisa and Ca{\\~n}amares, Roc{\\'i}o and Castells, Pablo and Ren,
             Yongli and Sanderson, Mark},
  title   = {Popularity Bias in False-Positive Metrics for Recommender Systems Evaluation},
  journal = {ACM Transactions on Information Systems}, year = {2021}, volume = {39}, number = {3},
  pages   = {36:1--36:43}, doi = {10.1145/3452740}
}""",
    "yang2018": """@inproceedings{yang2018,
  author    = {Yang, Longqi and Cui, Yin and Xuan, Yuan and Wang, Chenyang and Belongie, Serge and
               Estrin, Deborah},
  title     = {Unbiased Offline Recommender Evaluation for Missing-Not-at-Random Implicit Feedback},
  booktitle = {Proceedings of the 12th ACM Conference on Recommender Systems}, year = {2018},
  pages     = {279--287}, doi = {10.1145/3240323.3240355}
}""",
    "smucker2007": """@inproceedings{smucker2007,
  author    = {Smucker, Mark D. and Allan, James and Carterette, Ben},
  title     = {A Comparison of Statistical Significance Tests for Information Retrieval
               Evaluation},
  booktitle = {Proceedings of the 16th ACM Conference on Information and Knowledge Management},
  year      = {2007}, pages = {623--632}, doi = {10.1145/1321440.1321528}
}""",
    "kendall1938": """@article{kendall1938,
  author  = {Kendall, Maurice G.}, title = {A New Measure of Rank Correlation},
  journal = {Biometrika}, year = {1938}, volume = {30}, number = {1/2}, pages = {81--93}
}""",
}
"""By key."""


def used(audit: Measurements) -> list[str]:
    """Return the keys of the papers whose methods an audit used."""
    keys = {SOURCES[name] for name in audit.designs if name in SOURCES}
    keys |= {"castells2018"} if audit.null is not None else set()
    keys |= {"mena2021"} if audit.margins is not None or audit.bias is not None else set()
    keys |= {"valcarce2018"} if audit.power is not None or audit.sparsity is not None else set()
    keys |= {"yang2018"} if audit.estimates is not None else set()
    keys |= {"smucker2007"} if audit.comparison is not None else set()
    keys |= {"kendall1938"} if audit.agreement is not None else set()
    return [key for key in PAPERS if key in keys]


def bibtex(audit: Measurements) -> str:
    """Return the citations of the methods that an audit used."""
    return "\n\n".join(PAPERS[key] for key in used(audit))
