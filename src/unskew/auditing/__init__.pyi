from .interventions import intervention_study as intervention_study
from .null import null_experiment as null_experiment
from .null_designs import published_designs as published_designs
from .operating import operating_characteristics as operating_characteristics
from .true_values import debiased_training as debiased_training
from .true_values import sweep as sweep
from .true_values import truth as truth
