from .halving import TunedSystem as TunedSystem
from .halving import tune_systems as tune_systems
from .over_time import timeline as timeline
from .plan import Custom as Custom
from .plan_files import outline as outline
