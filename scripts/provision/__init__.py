"""Spend caps, alert budgets, topic, rights and TTL policies of one project, as `firebreak.toml` wants them."""
