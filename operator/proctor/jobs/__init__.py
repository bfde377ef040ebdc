"""Work that runs to completion: seeding and grading."""
