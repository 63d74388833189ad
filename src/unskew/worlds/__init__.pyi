from .nulls import redraw as redraw
from .observation import fit_popularity_law as fit_popularity_law
