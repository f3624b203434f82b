"""Licences as SPDX ids, from what people write into the field."""

import re

UNKNOWN = "unknown"

_IDS = """
    0BSD AFL-3.0 AGPL-3.0-only AGPL-3.0-or-later Apache-2.0 Artistic-2.0 BlueOak-1.0.0 BSD-2-Clause
    BSD-3-Clause BSD-4-Clause BSL-1.0 BUSL-1.1 CC-BY-4.0 CC-BY-NC-4.0 CC-BY-NC-SA-4.0 CC-BY-SA-4.0
    CC0-1.0 CECILL-2.1 ECL-2.0 Elastic-2.0 EPL-1.0 EPL-2.0 EUPL-1.2 GPL-2.0-only GPL-2.0-or-later
    GPL-3.0-only GPL-3.0-or-later ISC LGPL-2.1-only LGPL-2.1-or-later LGPL-3.0-only
    LGPL-3.0-or-later MIT MIT-0 MPL-2.0 MS-PL MulanPSL-2.0 NCSA ODbL-1.0 OFL-1.1 OSL-3.0
    PostgreSQL Python-2.0 SSPL-1.0 Unlicense UPL-1.0 WTFPL Zlib
""".split()  # noqa: SIM905

_ALIASES = {
    "apache": "Apache-2.0",
    "apache 2": "Apache-2.0",
    "apache 2.0": "Apache-2.0",
    "apache license": "Apache-2.0",
    "apache license 2.0": "Apache-2.0",
    "apache license, version 2.0": "Apache-2.0",
    "apache software license": "Apache-2.0",
    "bsd": "BSD-3-Clause",
    "bsd license": "BSD-3-Clause",
    "bsd 3-clause license": "BSD-3-Clause",
    "bsd 2-clause license": "BSD-2-Clause",
    "cc0": "CC0-1.0",
    "gnu affero general public license v3.0": "AGPL-3.0-only",
    "gnu general public license v2.0": "GPL-2.0-only",
    "gnu general public license v3.0": "GPL-3.0-only",
    "isc license": "ISC",
    "mit license": "MIT",
    "the mit license": "MIT",
    "the mit license (mit)": "MIT",
    "mozilla public license 2.0": "MPL-2.0",
    "the unlicense": "Unlicense",
}

_KNOWN = {
    **{spdx.lower(): spdx for spdx in _IDS},
    # SPDX's retired ids say neither "only" nor "or later": the narrower one is what is certain
    **{spdx.lower().removesuffix("-only"): spdx for spdx in _IDS if spdx.endswith("-only")},
    **{spdx.lower().replace("-or-later", "+"): spdx for spdx in _IDS if "-or-later" in spdx},
    **_ALIASES,
}


def spdx_of(text: object) -> str:
    """The SPDX id or expression that the text names; `unknown` for anything else.

    A link, a marketplace's name or free text is no licence, even where one could guess.
    """
    if not isinstance(text, str) or len(text) > 200:
        return UNKNOWN
    parts = re.split(r"\s+(OR|AND)\s+", text.strip().strip("()"))
    ids = [_KNOWN.get(" ".join(part.lower().split())) for part in parts[::2]]
    if None in ids or len(set(parts[1::2])) > 1:  # a mix needs brackets, which are not read here
        return UNKNOWN
    return f" {parts[1]} ".join(map(str, ids)) if len(parts) > 1 else str(ids[0])
