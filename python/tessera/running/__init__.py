"""What a composed module needs at run time, and nothing of how it was traced or judged."""
