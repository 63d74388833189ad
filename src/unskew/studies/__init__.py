"""The five papers, run again: their tables and figures beside ours, a verdict on every claim."""
