"""Licences as people write them."""

import pytest

from tool_specs.importing.licences import spdx_of


@pytest.mark.parametrize(
    ("text", "spdx"),
    [
        ("MIT", "MIT"),
        (" mit License", "MIT"),
        ("apache 2.0", "Apache-2.0"),
        ("Apache License, Version 2.0", "Apache-2.0"),
        ("GPL-3.0", "GPL-3.0-only"),
        ("GPL-3.0+", "GPL-3.0-or-later"),
        ("AGPL-3.0-or-later", "AGPL-3.0-or-later"),
        ("MIT OR Apache-2.0", "MIT OR Apache-2.0"),
        ("(MIT OR apache-2.0)", "MIT OR Apache-2.0"),
        ("MIT OR Smithery", "unknown"),
        ("MIT AND ISC OR Zlib", "unknown"),
        ("Smithery", "unknown"),
        ("https://opensource.org/licenses/MIT", "unknown"),
        ("Not specified", "unknown"),
        ("free for everyone to use", "unknown"),
        ("MIT " * 100, "unknown"),
        ("", "unknown"),
        (None, "unknown"),
        ({"name": "MIT"}, "unknown"),
    ],
)
def test_spdx_ids_or_unknown(text: object, spdx: str) -> None:
    assert spdx_of(text) == spdx
    assert spdx_of(spdx) == spdx
