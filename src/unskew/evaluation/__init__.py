"""From judged lists to scores."""
