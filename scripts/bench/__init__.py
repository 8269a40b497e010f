"""`make bench`: the bucket beside its alternatives, on one Firestore emulator, in one run."""
