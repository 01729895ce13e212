"""Any SQL practice system through a mapping."""
