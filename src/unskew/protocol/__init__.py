"""Experimental designs: splits, sub-samples, strata, target items and interventions."""
