"""Practice systems that speak JSON over HTTP, connected by a mapping file."""
