from .rank import ranks_of as ranks_of
