"""A house: embedded engines for a cluster without a ClickHouse; one for results, one for each dataset in use."""
