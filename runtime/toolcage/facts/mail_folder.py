"""A mail folder's name as IMAP writes it: modified UTF-7 (RFC 3501, 5.1.3).

Standard library only, so that the same file is sent into a cage with the tool that reads mail: what the tool asks for
and what the broker compares with the granted folders are one spelling. Pure.
"""

import base64


def encode_folder(name: str) -> bytes:
    """The name in modified UTF-7."""
    out, run = bytearray(), ""
    for character in (*name, ""):
        if character and not " " <= character <= "~":
            run += character
            continue
        if run:
            code = base64.b64encode(run.encode("utf-16-be")).rstrip(b"=").replace(b"/", b",")
            out += b"&" + code + b"-"
            run = ""
        out += b"&-" if character == "&" else character.encode("ascii")
    return bytes(out)
