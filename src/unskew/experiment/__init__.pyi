from .plan import Custom as Custom
from .preview import outline as outline
