"""Stand-in: budgets, spend caps and the catalog of services, as Cloud Billing has them."""
