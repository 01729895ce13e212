"""Who may use the panel: names, roles, passwords, sessions, and what each of them did there."""
