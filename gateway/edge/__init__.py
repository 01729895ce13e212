"""The proxy before the gateways: its configuration, made from the gateway's own settings."""
