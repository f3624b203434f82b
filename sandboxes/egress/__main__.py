"""`python -m sandboxes.egress`: the egress proxy as a process of its own."""

from sandboxes.egress.service import main

if __name__ == "__main__":
    main()
