from .definition import Definition as Definition
from .names import REGISTRY as REGISTRY
from .names import metric as metric
from .names import parse as parse
from .settings import Param as Param
