"""Firestore, counted: how many documents one request may read and write, and the client that holds it to that."""
