from .intervention_sweep import sweep as sweep
from .interventions import intervention_study as intervention_study
from .null import null_experiment as null_experiment
from .null_designs import published_designs as published_designs
from .operating import operating_characteristics as operating_characteristics
from .training_samples import debiased_training as debiased_training
from .true_scores import truth as truth
