"""What every doctor judges alike, whatever practice system it looks at: pure, no calls."""
