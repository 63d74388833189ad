from .result import Gate as Gate
from .settings import GateSettings as GateSettings
