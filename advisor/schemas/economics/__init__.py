"""Economic questions and answers, a module for each kind."""
