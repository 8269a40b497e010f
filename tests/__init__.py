"""Tests by what they need: unit (nothing), emulator (Firestore), e2e (the whole stack, official clients)."""
