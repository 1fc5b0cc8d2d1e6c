"""The database: tables, sessions and queries. The only package that knows SQLAlchemy."""
