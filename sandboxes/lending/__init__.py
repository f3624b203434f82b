"""How sandboxes are had: fresh ones, a pool of warm ones, and the accounts of both."""
