"""Payloads inside the messages of other protocols (protocol section 7)."""
