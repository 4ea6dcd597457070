"""`send_email`: one message from the mailbox that the grant names, to the recipients of the call and nobody else.

The body runs in a cage and speaks SMTP to its portal; the broker, outside, logs in, lets only the approved call's
recipients pass, and knows what it has sent, so that the same call tried again sends nothing twice. From is the
mailbox's, Message-ID and Date are the broker's. Recipients are not read here: the host has read them, and told.

No header can be added: the schema refuses a subject of two lines, this module refuses one again, `email.message` does,
and the broker reads every header before it passes a message on. Each of the four holds without the others.
Not here: replies to a thread, drafts, templates, other senders.
"""

import mimetypes
import os
import smtplib
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from email.message import EmailMessage
from email.policy import SMTP
from typing import Any, Final

from toolcage.tools.base import Tool, ToolFailure
from toolcage.tools.portal_end import portal_end

WORKSPACE: Final = "/workspace"
MAX_RECIPIENTS: Final = 50
MAX_SUBJECT: Final = 300
MAX_BODY: Final = 200_000
MAX_ATTACHMENTS: Final = 20
TIMEOUT_S: Final = 25.0
_SENT_BEFORE: Final = "sent before"
_POLICY: Final = SMTP.clone(cte_type="7bit")

_ADDRESSES: Final = {
    "type": "array",
    "items": {"type": "string", "minLength": 3, "maxLength": 400},
    "minItems": 1,
    "maxItems": MAX_RECIPIENTS,
}
PARAMETERS: Final = {
    "type": "object",
    "properties": {
        "to": {**_ADDRESSES, "description": "Mail addresses of the recipients, each as name@example.com."},
        "subject": {
            "type": "string",
            "minLength": 1,
            "maxLength": MAX_SUBJECT,
            "pattern": r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]*$",
            "description": "The subject, one line.",
        },
        "body": {
            "type": "string",
            "minLength": 1,
            "maxLength": MAX_BODY,
            "description": "The message as plain text.",
        },
        "cc": {**_ADDRESSES, "description": "Mail addresses that get a copy, seen by all."},
        "html": {
            "type": "string",
            "minLength": 1,
            "maxLength": MAX_BODY,
            "description": "The same message as HTML, for readers that show it: formatting, tables, links.",
        },
    },
    "required": ["to", "subject", "body"],
    "additionalProperties": False,
}
_KINDS: Final = {"to": "address", "cc": "address", "html": "html"}
_RESOURCES: Final = {"mailbox": "mailbox"}


class SendEmail(Tool):
    """Sends one message."""

    name = "send_email"
    description = (
        "Sends one e-mail from the mailbox that this role works with. Use it to answer a message, to send a summary or "
        "a report that the user asked for, or to send attached files to somebody. Do not use it to read mail (use "
        "read_email), to invite people to a meeting (use create_event), or to write to anybody whom the user did not "
        "mean: a message cannot be called back. Input: `to` and `cc` as lists of addresses, `subject` in one line, "
        "`body` as plain text, `html` only where formatting matters; files attached to the call become attachments; "
        "the sender cannot be chosen. Output: from, recipients, attachments (name and size), and status: `sent`, or "
        "`sent_before` where the same call has sent this message already and nothing was sent again."
    )
    parameters = PARAMETERS
    kinds = _KINDS
    effects = frozenset({"sends"})
    resources = _RESOURCES
    image = "web"
    isolation = "namespace"
    wall_s = 30.0
    idempotent = True
    accepts_files = True
    ships = ("toolcage.tools.portal_end",)

    def execute(
        self, to: list[str], subject: str, body: str, cc: list[str] | None = None, html: str | None = None
    ) -> dict[str, Any]:
        """What was sent to whom. Raises ToolFailure with a `mail.*` code; then nothing was sent."""
        end = portal_end(self.context, "smtp")
        told = self.context.get("addresses") or {}
        recipients = {name: [str(item) for item in told.get(name) or ()] for name in ("to", "cc")}
        if not recipients["to"]:
            raise ToolFailure("mail.no_recipients", "The message names nobody in `to`.", "Name at least one address.")
        message = compose(str(end["address"]), recipients, subject, body, html)
        attached = list(_attach(message, WORKSPACE, int(end["max_message"])))
        status = _hand_over(end, message, [*recipients["to"], *recipients["cc"]])
        return {
            "status": status,
            "from": str(end["address"]),
            "recipients": [*recipients["to"], *recipients["cc"]],
            "attachments": attached,
        }


EmailTool = SendEmail


def compose(
    sender: str, recipients: Mapping[str, Iterable[str]], subject: str, body: str, html: str | None
) -> EmailMessage:
    """The message without attachments. Raises ToolFailure (`mail.header`) for what would not stay one header."""
    message = EmailMessage(policy=_POLICY)
    try:
        message["From"] = _one_line(sender)
        for name, header in (("to", "To"), ("cc", "Cc")):
            if addresses := [_one_line(address) for address in recipients.get(name) or ()]:
                message[header] = ", ".join(addresses)
        message["Subject"] = _one_line(subject)
        message.set_content(_encodable(body))
        if html is not None:
            message.add_alternative(_encodable(html), subtype="html")
    except ValueError as error:
        raise ToolFailure("mail.header", f"A header cannot be written: {str(error)[:200]}.", _ONE_LINE) from None
    return message


_ONE_LINE: Final = "Write it in one line, without control characters."


def _one_line(value: str) -> str:
    """The same text, if no reader of mail could see the end of a line in it."""
    if any(unicodedata.category(character) in ("Cc", "Zl", "Zp", "Cs") for character in value):
        raise ToolFailure("mail.header", "A header's value holds a line end or a control character.", _ONE_LINE)
    return value


def _encodable(text: str) -> str:
    """Half a surrogate pair is no character; it is shown as what it is."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _attach(message: EmailMessage, folder: str, max_message: int) -> Iterator[dict[str, Any]]:
    """Adds every file of the call. Raises ToolFailure (`mail.too_large`, `mail.too_many_files`)."""
    total = len(message.as_bytes())
    for number, path in enumerate(_files(folder), start=1):
        if number > MAX_ATTACHMENTS:
            text = f"More than {MAX_ATTACHMENTS} files are attached."
            raise ToolFailure("mail.too_many_files", text, "Send fewer at a time, or one archive.")
        size = os.path.getsize(path)
        total += size * 4 // 3 + size // 57 + 1024  # base64, its line ends, the part's header
        if total > max_message:
            break
        with open(path, "rb") as file:
            content = file.read()
        name = os.path.relpath(path, folder).replace("/", "_")
        kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
        main, _, sub = kind.partition("/")
        if main in ("message", "multipart"):  # may not be encoded, and would be read as more of this message
            main, sub = "application", "octet-stream"
        message.add_attachment(content, maintype=main, subtype=sub, filename=_one_line(name))
        yield {"name": name, "bytes": size}
    if total > max_message:
        text = f"The message with its files is larger than the {max_message} bytes that this mailbox takes."
        raise ToolFailure("mail.too_large", text, "Send less, or say where the rest can be found.")


def _files(folder: str) -> Iterator[str]:
    """The files of the call, in order of their names; they came from the host, so there are no links among them."""
    for place, folders, names in os.walk(folder):
        folders.sort()
        yield from (os.path.join(place, name) for name in sorted(names))


def _hand_over(end: Mapping[str, Any], message: EmailMessage, recipients: list[str]) -> str:
    """`sent` or `sent_before`: the portal takes a message for all recipients or for none."""
    try:
        server = smtplib.SMTP(str(end["host"]), int(end["port"]), "localhost", timeout=TIMEOUT_S)
    except (smtplib.SMTPException, OSError) as error:
        raise _broken("The mail server could not be reached", error, _LATER) from None
    try:
        server.ehlo_or_helo_if_needed()
        _expect(server.mail(str(end["address"])), "mail.refused", "the sender was refused")
        for recipient in recipients:
            _expect(server.rcpt(recipient), "mail.recipient_refused", f"{recipient} was refused")
        answer = _data(server, message.as_bytes())
    except (smtplib.SMTPException, OSError) as error:
        raise _broken("The connection to the mail server broke", error, _LATER) from None
    finally:
        server.close()
    return "sent_before" if _SENT_BEFORE in answer else "sent"


def _data(server: smtplib.SMTP, content: bytes) -> str:
    """The portal's yes. It gives one only when the mail server has taken the message."""
    try:
        answer = server.data(content)
    except smtplib.SMTPDataError as error:
        answer = (error.smtp_code, _bytes(error.smtp_error))
    except (smtplib.SMTPException, OSError) as error:
        raise _broken("Whether the message was sent is not known: the connection broke", error, _UNKNOWN) from None
    if not 200 <= answer[0] < 300 and b"not known" in _bytes(answer[1]):
        words = _bytes(answer[1]).decode("utf-8", "replace")[:300]
        raise ToolFailure("mail.unknown", f"Whether the message was sent is not known ({words}).", _UNKNOWN)
    _expect(answer, "mail.refused", "the message was refused")
    return _bytes(answer[1]).decode("utf-8", "replace")


_LATER: Final = "Try again later; the same call is never sent twice."
_UNKNOWN: Final = "Tell the user; the same call is not sent again."


def _broken(what: str, error: Exception, hint: str) -> ToolFailure:
    code = "mail.unknown" if hint is _UNKNOWN else "mail.unreachable"
    return ToolFailure(code, f"{what} ({type(error).__name__}).", hint)


def _expect(answer: tuple[int, bytes | str], code: str, what: str) -> None:
    """Raises ToolFailure unless the portal said yes; its words are for the model."""
    number, words = answer[0], _bytes(answer[1]).decode("utf-8", "replace")
    if 200 <= number < 300:
        return
    if 400 <= number < 500:
        raise ToolFailure("mail.later", f"Nothing was sent for now: {what} ({words[:300]}).", _LATER)
    hint = "Correct what was refused; do not repeat the same call."
    raise ToolFailure(code, f"Nothing was sent: {what} ({words[:300]}).", hint)


def _bytes(words: bytes | str) -> bytes:
    return words if isinstance(words, bytes) else words.encode("utf-8", "replace")
