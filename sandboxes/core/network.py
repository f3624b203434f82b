"""What a sandbox with a network is shown of this machine: how names resolve, whom it trusts."""

from pathlib import Path

RESOLVER = Path("/etc/resolv.conf")
AUTHORITIES = "/etc/ssl/certs/ca-certificates.crt"
"""Where a sandbox with network finds the certificates that this machine trusts."""

TRUSTED = (AUTHORITIES, "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem")
"""Where systems keep them; the first that exists is shown."""


def network_files() -> dict[str, bytes]:
    """What resolving names and checking certificates need, copied: all else of /etc stays out."""
    found = {"/etc/nsswitch.conf": b"passwd: files\ngroup: files\nhosts: files dns\n"}
    if RESOLVER.exists():
        found[str(RESOLVER)] = RESOLVER.read_bytes()
    trusted = next((path for path in map(Path, TRUSTED) if path.is_file()), None)
    return found if trusted is None else found | {AUTHORITIES: trusted.read_bytes()}
