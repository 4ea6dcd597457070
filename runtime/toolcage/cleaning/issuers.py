"""Issuers whose prefix says what follows: the table of their keys, for `secret_shapes`.

Each row is the prefix, enough of what follows to look closer, and all that follows, as patterns. A row says nothing of
what may stand before or behind a key, nor that it mixes letters and digits: that is the same for all of them, and the
shape's word. Sources: the issuers' documentation of their formats.
"""

from __future__ import annotations

from typing import Final

ISSUED: Final[tuple[tuple[str, str, str], ...]] = (
    *(
        (prefix, f"{characters}{{16}}", f"{characters}{{{count},}}+")
        for prefix, characters, count in (
            ("AGE-SECRET-KEY-1", "[A-Z0-9]", 58),
            ("AKCp", "[A-Za-z0-9]", 60),
            (r"AQ\.Ab8RN6", "[A-Za-z0-9_-]", 35),
            ("AQVN", "[A-Za-z0-9_-]", 35),
            ("CCDB1_", "[A-Za-z0-9_]", 50),
            ("CCIPAT_", "[A-Za-z0-9_]", 50),
            ("CFPAT-", "[A-Za-z0-9_-]", 43),
            ("CLOJARS_", "[a-z0-9]", 60),
            ("EAA", "[A-Za-z0-9_-]", 57),
            ("EZAK", "[A-Za-z0-9]", 54),
            ("EZTK", "[A-Za-z0-9]", 54),
            ("HRKU-AA", "[A-Za-z0-9_-]", 50),
            ("aio_", "[A-Za-z0-9]", 28),
            ("bkua_", "[a-f0-9]", 40),
            ("cmVmdGtu", "[A-Za-z0-9]", 56),
            ("dnkey-", "[a-z0-9-]", 60),
            ("duffel_live_", "[A-Za-z0-9_=-]", 40),
            ("duffel_test_", "[A-Za-z0-9_=-]", 40),
            ("fc-", "[a-f0-9]", 32),
            ("figd_", "[A-Za-z0-9_-]", 36),
            ("fio-u-", "[A-Za-z0-9_=-]", 60),
            ("fm2_", "[A-Za-z0-9+/=_-]", 60),
            ("fo1_", "[A-Za-z0-9_-]", 43),
            ("glc_eyJ", "[A-Za-z0-9+/=]", 32),
            (r"hvb\.", "[A-Za-z0-9_-]", 100),
            ("ico-", "[A-Za-z0-9]", 32),
            ("key-", "[a-f0-9]", 32),
            ("live_", "[a-f0-9]", 35),
            ("lsv2_pt_", "[a-f0-9_]", 42),
            ("lsv2_sk_", "[a-f0-9_]", 42),
            ("nvapi-", "[A-Za-z0-9_-]", 60),
            ("ops_eyJ", "[A-Za-z0-9+/=]", 60),
            ("oy2", "[a-z0-9]", 43),
            ("p8e-", "[A-Za-z0-9]", 32),
            ("pcsk_", "[A-Za-z0-9_]", 60),
            ("pnu_", "[A-Za-z0-9]", 36),
            ("pul-", "[a-f0-9]", 40),
            ("rdme_", "[a-z0-9]", 60),
            ("secret_", "[A-Za-z0-9]", 43),
            ("sgp_", "[a-f0-9_]", 40),
            ("shippo_live_", "[a-f0-9]", 40),
            ("shippo_test_", "[a-f0-9]", 40),
            ("sk-lf-", "[a-f0-9-]", 36),
            ("sk_", "[a-f0-9]", 48),
            (r"sl\.", "[A-Za-z0-9_=-]", 120),
            ("sq0atp-", "[A-Za-z0-9_-]", 22),
            ("sq0csp-", "[A-Za-z0-9_-]", 40),
            ("sqa_", "[a-f0-9]", 40),
            ("sqp_", "[a-f0-9]", 40),
            ("squ_", "[a-f0-9]", 40),
            ("tfp_", "[A-Za-z0-9_-]", 40),
            ("tk-us-", "[A-Za-z0-9_-]", 40),
            ("tskey-", "[A-Za-z0-9-]", 30),
            ("tvly-", "[A-Za-z0-9-]", 28),
            ("xkeysib-", "[A-Za-z0-9-]", 80),
            ("xsmtpsib-", "[A-Za-z0-9-]", 80),
        )
    ),
    ("FLWSECK", "(?:_TEST)?-[a-h0-9]{12}", "(?:_TEST)?-[a-h0-9]{12,32}-X"),
    ("LTAI", "[A-Za-z0-9]{12}", "[A-Za-z0-9]{12,24}"),
    ("SK", "[a-f0-9]{32}", "[a-f0-9]{32}"),
    (
        "access-",
        "[a-z]{7,11}-[a-f0-9]{8}-",
        "(?:sandbox|development|production)-[a-f0-9]{8}-(?:[a-f0-9]{4}-){3}[a-f0-9]{12}",
    ),
    (r"dp\.", r"[a-z]{2,5}\.[A-Za-z0-9]{16}", r"(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9]{40,}+"),
    ("dt0", r"[a-z][0-9]{2}\.[A-Z0-9]{24}\.", r"[a-z][0-9]{2}\.[A-Z0-9]{24}\.[A-Z0-9]{64}"),
    ("pat", r"[A-Za-z0-9]{14}\.[a-f0-9]{16}", r"[A-Za-z0-9]{14}\.[a-f0-9]{64}"),
    (r"pat\.", r"[A-Za-z0-9_-]{22}\.[a-f0-9]{16}", r"[A-Za-z0-9_-]{22}\.[a-f0-9]{24}\.[A-Za-z0-9]{20}"),
    ("pat-", "[a-z]{2}[0-9]-[a-f0-9]{8}-", "[a-z]{2}[0-9]-[a-f0-9]{8}-(?:[a-f0-9]{4}-){3}[a-f0-9]{12}"),
    ("re_", "[A-Za-z0-9]{8}_[A-Za-z0-9]{16}", "[A-Za-z0-9]{8}_[A-Za-z0-9]{24}"),
    ("rzp_", "[a-z]{4}_[A-Za-z0-9]{14}", "(?:live|test)_[A-Za-z0-9]{14}"),
    (r"sk\.eyJ", "[A-Za-z0-9_-]{16}", r"[A-Za-z0-9_-]{16,}+\.[A-Za-z0-9_-]{20,}+"),
    (r"v1\.0-", "[a-f0-9]{24}-[a-f0-9]{16}", "[a-f0-9]{24}-[a-f0-9]{140,}+"),
    ("1//0", "[A-Za-z0-9_-]{16}", "[A-Za-z0-9_-]{40,}+"),
    ("2/", "[0-9]{16}/[0-9]{16}:", "[0-9]{16}/[0-9]{16}:[a-f0-9]{32}"),
)
