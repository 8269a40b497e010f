"""The operator's tool: the kill switch, a user's tokens, calls and the pool, looked at and changed from a shell."""
