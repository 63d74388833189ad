from .collection import Library as Library
from .collection import LibraryMetric as LibraryMetric
from .collection import known_libraries as known_libraries
from .collection import library as library
from .convention import AXES as AXES
from .convention import Axis as Axis
from .convention import Convention as Convention
