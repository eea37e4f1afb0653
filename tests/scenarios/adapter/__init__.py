"""Our operator scales on what our adapter serves, through the aggregator of the lab and of the real API server."""
