"""Firestore in memory, where the metered client meets the wire; `tests/emulator/test_twin.py` holds it to the emulator.

    twin = Twin(Virtual().now_us)
    ledger = Ledger(metered_on(twin).guards())

What it does not do raises `NotCovered`: pipelines, listeners, vector searches, reads in the past, filters for what is
not. It asks for no index, knows no limit on the size of a document, and a sum under a limit is that of the first by
name. It differs on purpose:

- Transactions are optimistic: one that read what has changed since is `Aborted` at its commit, at once. The emulator
  waits two seconds for a lock first; production, too, locks.
- A read of several documents is one moment; the emulator rarely shows a commit by halves.
- Nothing expires until `Twin.expire` is called; the emulator never deletes what has expired.

Known of the emulator alone, and followed: a precondition with nanoseconds, or later than the document, is an invalid
argument; several writes of one commit to one document work on it in turn, under the first one's precondition.
"""
