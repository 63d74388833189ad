"""From values per user to conclusions: who is better, by how much, how sure; what to believe."""
