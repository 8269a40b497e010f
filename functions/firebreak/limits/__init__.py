"""Limits an hour, taken in leases: requests of each user, and the pool of the app."""
