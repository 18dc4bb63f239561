"""Engines and backends: where the shards of tables live, and how a step reaches them."""
