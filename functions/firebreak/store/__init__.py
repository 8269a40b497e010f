"""Documents under preconditions: times, commits, what an answer proves, and tries under one deadline."""
