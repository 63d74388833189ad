"""bellogin2017: sparsity and popularity biases of ranking metrics for recommender systems."""
