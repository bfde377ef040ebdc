"""The types of EvalSuite and EvalRun, their conditions, and the files generated from them."""
