from .writing import embedded as embedded
from .writing import save_report as save_report
