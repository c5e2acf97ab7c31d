"""Sends the alert on standard input as an e-mail: a command for EARSHOT_ALERT_COMMAND."""
import argparse
import json
import re
import smtplib
import ssl
import sys
from email.message import EmailMessage
from email.utils import format_datetime, localtime
from urllib.parse import urlsplit

LOOPBACK = ("localhost", "127.0.0.1", "::1")

arguments = argparse.ArgumentParser(description=__doc__)
arguments.add_argument("--server", required=True, help="smtp://host:587, or smtps://host:465")
arguments.add_argument("--login", help="file: user and password, one per line")
arguments.add_argument("--from", required=True, dest="sender", help="address of the sender")
arguments.add_argument("--to", required=True, help="address of the recipient")
options = arguments.parse_args()


def connect():
    """Connects with TLS. Only a server on this machine may lack it."""
    server, context = urlsplit(options.server), ssl.create_default_context()
    if server.scheme == "smtps":
        return smtplib.SMTP_SSL(server.hostname, server.port or 465, timeout=20, context=context)
    if server.scheme != "smtp":
        sys.exit(f"--server must begin with smtp:// or smtps://: {options.server}")
    connection = smtplib.SMTP(server.hostname, server.port or 587, timeout=20)
    connection.ehlo()
    if connection.has_extn("starttls") or server.hostname not in LOOPBACK:
        connection.starttls(context=context)
    return connection


alert = json.load(sys.stdin)
message = EmailMessage()
message["From"], message["To"] = options.sender, options.to
message["Subject"] = alert["text"].splitlines()[0]
message["Date"] = format_datetime(localtime())
# The same in a repetition. The time distinguishes receivers, whose ids are equal.
raised = re.sub(r"\D", "", alert["raisedAt"])
message["Message-ID"] = f"<{alert['id']}.{raised}@{options.sender.partition('@')[2]}>"
message["Auto-Submitted"] = "auto-generated"
message.set_content(alert["text"])
try:
    with connect() as connection:
        if options.login:
            with open(options.login) as login:
                connection.login(*login.read().splitlines()[:2])
        connection.send_message(message)
except (OSError, smtplib.SMTPException) as error:
    sys.exit(f"The mail server did not accept the message: {error}")
