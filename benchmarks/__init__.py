"""Side-by-side timings against the peers; never timed tests."""
