from .names import parse as parse
from .registry import REGISTRY as REGISTRY
