"""Recommenders: one file per family. An algorithm is settings; fitting it gives a model."""
