from .contents import Tracked as Tracked
from .mlflow_runs import log_to_mlflow as log_to_mlflow
from .wandb_runs import log_to_wandb as log_to_wandb
