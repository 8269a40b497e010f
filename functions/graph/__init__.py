"""A graph of nodes and edges for each user: the Firestore-heavy workload that the meters were made for."""
