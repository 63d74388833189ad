"""Why two numbers differ: the search for conventions that give a printed value."""
