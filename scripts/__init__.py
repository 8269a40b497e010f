"""Programs for a developer's machine and for operators; nothing here is deployed."""
