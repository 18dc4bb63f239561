"""Shows that a new job is the old one: runs both, records what they do, and compares it."""
