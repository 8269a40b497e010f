"""Firebreak: Gemini behind Firebase callables, with a limit that holds."""
