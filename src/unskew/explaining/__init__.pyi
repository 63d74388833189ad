from .explanation import Answer as Answer
from .explanation import Explanation as Explanation
from .waterfall import Step as Step
from .waterfall import Waterfall as Waterfall
