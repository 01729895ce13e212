"""The partner's side: HTTP in and out, on aiohttp."""
