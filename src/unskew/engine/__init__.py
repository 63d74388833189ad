"""How things run: nothing here knows what a recommender is."""
