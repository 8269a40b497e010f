"""The per-user token bucket: pure arithmetic, its Firestore documents, and the ledger that reserves and settles."""
