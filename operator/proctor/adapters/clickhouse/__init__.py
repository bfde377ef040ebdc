"""ClickHouse: connections, the results store, the catalog of datasets."""
