"""Cases beside a policy: what a clinic expects of it, tried, and how much of it they try."""
