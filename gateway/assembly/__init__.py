"""How a gateway is put together: the parts of each kind, opened from the settings."""
