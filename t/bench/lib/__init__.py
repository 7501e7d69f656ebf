"""The benchmarks' driver. Python 3.9 or later, standard library only."""
