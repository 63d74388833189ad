from .hygiene import hygiene as hygiene
from .rank import ranks_of as ranks_of
from .step_ranks import rank_steps as rank_steps
