"""What the owner sets: knobs, tiers, weights and budget policies, read and checked once."""
