"""Gemini: what a client may ask, what it may cost, and the one client that asks it."""
