from .estimates import Estimates as Estimates
from .page import embedded as embedded
from .page import save_report as save_report
