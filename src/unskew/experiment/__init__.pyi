from .plan import Custom as Custom
from .plan_outline import outline as outline
