from .librec import LibRecItemKNN as LibRecItemKNN
from .librec import LibRecSLIM as LibRecSLIM
from .librec import LibRecUserKNN as LibRecUserKNN
from .presets import preset as preset
from .result import StudyResult as StudyResult

__version__: str
