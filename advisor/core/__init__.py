"""The planning core: numpy and the standard library only, no HTTP, no database."""
