"""The project's benchmarks: every figure that it claims, measured by one command each."""
