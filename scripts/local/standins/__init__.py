"""Stand-ins for Google services that have no emulator: real wire formats, for the real client libraries."""
