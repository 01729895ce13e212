"""What a mapped practice system answers, apart from how it is asked."""
