"""Many plans as one job: which questions a sweep asks, and a row of figures for each answer."""
