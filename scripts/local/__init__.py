"""The local stack: the official emulators, and stand-ins for the Google services that have none."""
