"""Checks of wording: terms of the field that readers take in more than one way."""
