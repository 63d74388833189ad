"""What a score is made of: chance, popularity, item quality, personalisation."""
