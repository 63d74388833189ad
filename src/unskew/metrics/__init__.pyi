from .definition import Definition as Definition
from .names import parse as parse
from .registry import REGISTRY as REGISTRY
from .registry import metric as metric
from .settings import Param as Param
