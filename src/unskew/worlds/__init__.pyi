from .event_logs import event_log as event_log
from .nulls import redraw as redraw
from .observation import fit_popularity_law as fit_popularity_law
