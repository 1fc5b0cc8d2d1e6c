"""The web application: routes parse, call a use case, and answer. The only package with Flask."""
