"""How often statements, gates and checks for leaks are false, in worlds whose truth is known."""
