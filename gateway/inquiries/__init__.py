"""What a clinic asks of its gateway, whichever way it asks: by a command, or in the panel."""
