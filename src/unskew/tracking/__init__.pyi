from .trackers import Tracked as Tracked
from .trackers import log_to_mlflow as log_to_mlflow
from .trackers import log_to_wandb as log_to_wandb
