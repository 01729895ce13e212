"""Who is asking: keys, their secrets, the store that keeps them, the ring that is asked."""
