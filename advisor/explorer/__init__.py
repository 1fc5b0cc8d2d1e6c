"""The explorer: pages on which people ask the planner without writing a request.

A page turns its fields into the very body of an API request, has it checked by the same schema and
answered by the same service function, and shows the answer. Nothing is computed here, nothing is
stored.
"""
