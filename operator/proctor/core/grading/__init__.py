"""From an answer and a rubric to marks and a grade."""
