"""Whether a scenario is fair, as far as its files tell: pure, and fast."""
