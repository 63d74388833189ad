from .chance import expected_precision as expected_precision
from .chance import fairness as fairness
from .chance import one_relevant_bounds as one_relevant_bounds
from .chance import sparsity as sparsity
from .on_disk.files import evaluate_files as evaluate_files
from .on_disk.files import load_means as load_means
from .on_disk.files import scan_values as scan_values
from .step_scores import evaluate_steps as evaluate_steps
