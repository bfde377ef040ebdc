"""A recipe compiled to SQL: tables, rows, rollups, digests, facts."""
