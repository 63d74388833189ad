"""carraro2020: test sets drawn so that they look missing at random, held against random ratings."""
