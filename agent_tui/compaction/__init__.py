"""Making the context smaller: pure plans, a bounded summariser, code that checks both."""
