"""What systems would score were everything judged: propensities, weighted estimates, bounds."""
