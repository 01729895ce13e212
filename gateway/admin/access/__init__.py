"""Who may come in: signing in and out, sessions, roles, and a trace of every action."""
