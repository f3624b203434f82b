"""The kubeconfig that clients of the double get."""

from pathlib import Path

import yaml


def write_kubeconfig(path: Path, url: str, *, user: str = "tester") -> None:
    """A config of one cluster and one user, whose token is its name in the request log.

    Written beside and then renamed: who waits for the file never reads half of it.
    """
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "double", "cluster": {"server": url}}],
        "users": [{"name": user, "user": {"token": user}}],
        "contexts": [
            {
                "name": "double",
                "context": {"cluster": "double", "user": user, "namespace": "default"},
            }
        ],
        "current-context": "double",
    }
    fresh = path.with_suffix(".fresh")
    fresh.write_text(yaml.safe_dump(config))
    fresh.replace(path)
