"""A run in other programs' formats: lines of JSON, a table, spans."""
