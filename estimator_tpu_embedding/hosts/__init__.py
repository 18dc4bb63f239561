"""Where shards live and how a step reaches them."""
