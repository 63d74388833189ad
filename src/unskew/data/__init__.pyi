from .collection import read_qrels as read_qrels
from .overview import summary as summary
from .ratings import Ids as Ids
from .relevance import levels as levels
from .true_judgments import TrueJudgments as TrueJudgments
