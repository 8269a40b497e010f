"""Stand-ins: the admin APIs that provisioning asks, each with as much of a state as that needs."""
