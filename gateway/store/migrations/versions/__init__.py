"""One file per migration, in their order."""
