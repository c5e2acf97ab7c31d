/**
 * Device cookies: browsers that logged in before are not blocked when others guess the password from their address.
 * A cookie is no login: the password is still required.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { parse, serialize } from 'hono/utils/cookie';

const name = 'earshot-device';
const lifetimeSeconds = 30 * 86_400;
const form = /^([\w-]{1,64})\.(\d{1,12})\.([\w-]{43})$/;

export type DeviceCookies = ReturnType<typeof createDeviceCookies>;

/** `newId` must be unpredictable. The key is valid for this process: after a restart, cookies are issued again. */
export function createDeviceCookies({
  nowUs,
  newId,
}: {
  nowUs: () => number;
  newId: () => string;
}) {
  const key = `${newId()} ${newId()}`;
  const nowSeconds = () => Math.floor(nowUs() / 1_000_000);
  const sign = (text: string) => createHmac('sha256', key).update(text).digest('base64url');

  /** Returns id and remaining time of a valid cookie; null for others. */
  function read({ headers }: IncomingMessage): { id: string; leftSeconds: number } | null {
    const { [name]: value = '' } = parse(headers.cookie ?? '', name);
    const [, id = '', expirySeconds = '', signature = ''] = form.exec(value) ?? [];
    const expected = sign(`${id}.${expirySeconds}`);
    const leftSeconds = Number(expirySeconds) - nowSeconds();
    const isSigned =
      signature.length === expected.length &&
      timingSafeEqual(Buffer.from(signature), Buffer.from(expected));
    return isSigned && leftSeconds > 0 ? { id, leftSeconds } : null;
  }

  return {
    /** Returns the id in a valid cookie; null for others. */
    idOf: (incoming: IncomingMessage): string | null => read(incoming)?.id ?? null,
    /** Returns the cookie to set after a login; undefined if the request has one that stays valid. */
    cookieFor: (incoming: IncomingMessage): string | undefined => {
      if ((read(incoming)?.leftSeconds ?? 0) > lifetimeSeconds / 2) return undefined;
      const text = `${newId()}.${nowSeconds() + lifetimeSeconds}`;
      return serialize(name, `${text}.${sign(text)}`, {
        httpOnly: true,
        sameSite: 'Strict',
        path: '/',
        maxAge: lifetimeSeconds,
        // The listener itself has plain HTTP only; a proxy reports HTTPS.
        secure: /^\s*https\b/i.test(String(incoming.headers['x-forwarded-proto'] ?? '')),
      });
    },
  };
}
