/** Schemas that read a variable's text into a value. Their errors complete "NAME: …". */
import { z } from 'zod';

/** `host:port`, with IPv6 addresses in brackets, to its two parts. */
export const listenAddress = z.string().transform((text, context) => {
  const match = /^(?:\[([0-9a-f:]+)\]|([^:[\]]+)):(\d{1,5})$/i.exec(text);
  const port = Number(match?.[3]);
  if (match === null || port > 65_535) {
    context.addIssue('must be host:port, such as 0.0.0.0:8443 or [::]:8443');
    return z.NEVER;
  }
  return { host: match[1] ?? match[2] ?? '', port };
});

/** An https URL without path, to its origin. */
export const publicUrl = z.string().transform((text, context) => {
  const url = URL.parse(text);
  if (url === null || url.protocol !== 'https:') {
    context.addIssue('must be an https URL, such as https://earshot.example.org:8443');
    return z.NEVER;
  }
  if (
    url.username + url.password !== '' ||
    url.pathname !== '/' ||
    url.search !== '' ||
    url.hash !== ''
  ) {
    context.addIssue('must hold nothing but https://, the name and perhaps the port');
    return z.NEVER;
  }
  return url.origin;
});
