"""The partners' side: answers their calls over HTTP, on aiohttp."""
