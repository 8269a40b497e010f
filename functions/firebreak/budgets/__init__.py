"""Budgets of Google Cloud: what their notifications set off, and the state of spend caps."""
