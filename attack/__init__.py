"""What we do to a gateway of our own, and whether those who mean well notice."""
