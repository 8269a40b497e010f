"""Entry points: what a request, message or event passes before a handler runs."""
