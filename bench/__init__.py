"""What the gateway costs, as ratios against a bare aiohttp handler in the same run."""
