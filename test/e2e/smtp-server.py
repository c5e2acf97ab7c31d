"""An SMTP server for tests: prints its port, and each accepted message as JSON.

Arguments: plain, starttls or smtps; certificate and key; user and password.
"""
import asyncio
import json
import ssl
import sys
from email import message_from_bytes, policy

from aiosmtpd.smtp import SMTP, AuthResult

mode, certificate, key, *login = sys.argv[1:]
context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
context.load_cert_chain(certificate, key)
options = {"auth_required": mode != "plain", "auth_require_tls": mode == "starttls"}
if mode == "starttls":
    options |= {"tls_context": context, "require_starttls": True}


class Printer:
    async def handle_DATA(self, server, session, envelope):
        message = message_from_bytes(envelope.content, policy=policy.default)
        text = message.get_content().replace("\r\n", "\n")
        print(json.dumps({**message, "text": text, "rcpt": envelope.rcpt_tos}), flush=True)
        return "250 OK"


def authenticate(server, session, envelope, mechanism, data):
    is_right = [data.login.decode(), data.password.decode()] == login
    return AuthResult(success=is_right, handled=is_right)


async def main():
    def session():
        return SMTP(Printer(), authenticator=authenticate, **options)

    tls = context if mode == "smtps" else None
    server = await asyncio.get_running_loop().create_server(session, "127.0.0.1", 0, ssl=tls)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main())
