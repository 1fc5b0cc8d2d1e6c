"""Long runs over real sockets, on this machine alone: `make soak`. Each prints what it saw."""
