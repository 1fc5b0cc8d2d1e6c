"""Economic questions: figures of the request, of plans and of price lists, to the core and back."""
