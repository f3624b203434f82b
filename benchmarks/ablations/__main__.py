"""`python -m benchmarks.ablations`; processes of the driver find its functions by its own name."""

from benchmarks.ablations.driver import main

if __name__ == "__main__":
    main()
