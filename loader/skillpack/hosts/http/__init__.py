"""The HTTP server: ``skillpack http``."""
