"""Programs that the benchmarks run in processes of their own; the peers' import nothing but harness and the peer."""
