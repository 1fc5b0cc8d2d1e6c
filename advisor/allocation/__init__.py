"""Fleets: which devices of an inventory serve which demands.

`request` holds the question, `pools` what the planner says of it, `problem` the integer program as
data, `program` and `solve` its solution by HiGHS, `checking` the planner's verdict on every pool
chosen, `alternatives` what would be otherwise, `answer` all of it in its API form. Only `program`
needs SciPy, and loads it when it is called.
"""
