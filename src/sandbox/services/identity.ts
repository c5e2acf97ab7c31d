/** Identity provider like Keycloak: logins, sessions and tokens. */
import type { HttpBindings } from '@hono/node-server';
import { Hono } from 'hono';
import { Secret, TOTP } from 'otpauth';
import type { Random, SandboxClock } from '../clock.ts';
import type { LiveServiceSettings } from '../settings.ts';
import { page, type ServiceAnswer, writeAnswer } from './service-answer.ts';

/** Path of the realm, below the origin. */
export const realmPath = '/auth/realms/CDSE';

/** Path of the token endpoint, below the realm. */
export const tokenPath = '/protocol/openid-connect/token';

/** The only known client: the public one of the real service. */
const clientId = 'cdse-public';
const grants = ['password', 'refresh_token'];
const tokenDigits = 64;
/** Lifetime of a refresh token and its session, from the login. */
const sessionMs = 3_600_000;
const sessionsMax = 100;

interface Session {
  readonly id: string;
  /** Does not change during the session. */
  readonly refreshToken: string;
  readonly endsMs: number;
}

export type IdentityProvider = ReturnType<typeof createIdentityProvider>;

/** Creates a provider for one user, without sessions. Tokens are opaque and expire on the sandbox's clock. */
export function createIdentityProvider({
  account,
  liveSettings,
  clock,
  random,
}: {
  readonly account: { readonly username: string; readonly password: string };
  readonly liveSettings: LiveServiceSettings;
  readonly clock: SandboxClock;
  readonly random: Random;
}) {
  const acceptCode = createOneTimeCodes(clock);
  /** Session by refresh token, and expiry by access token. */
  const sessions = new Map<string, Session>();
  const accessTokens = new Map<string, number>();

  const issue = ({ id, refreshToken, endsMs }: Session): ServiceAnswer => {
    const nowMs = clock.now();
    const accessMs = Math.min(liveSettings.current().accessTokenSeconds * 1_000, endsMs - nowMs);
    const accessToken = random.hex(tokenDigits);
    accessTokens.set(accessToken, nowMs + accessMs);
    const body = {
      access_token: accessToken,
      expires_in: Math.floor(accessMs / 1_000),
      refresh_expires_in: Math.floor((endsMs - nowMs) / 1_000),
      refresh_token: refreshToken,
      token_type: 'Bearer',
      'not-before-policy': 0,
      session_state: id,
    };
    return { status: 200, body };
  };
  const login = (form: URLSearchParams): ServiceAnswer => {
    const { totpSecret } = liveSettings.current();
    const { username, password } = account;
    const known = form.get('username') === username && form.get('password') === password;
    // Checked first: a wrong password must not consume the code.
    if (!known || (totpSecret !== null && !acceptCode(totpSecret, form.get('totp')))) {
      return refusal(401, 'invalid_grant', 'Invalid user credentials');
    }
    // Keycloak's session limiter answers with an HTML page, even without a browser.
    if (sessions.size >= sessionsMax) return page(403, 'There are too many sessions');
    const endsMs = clock.now() + sessionMs;
    const session = { id: random.uuid(), refreshToken: random.hex(tokenDigits), endsMs };
    sessions.set(session.refreshToken, session);
    return issue(session);
  };

  return {
    /** Answers a token request; errors as in RFC 6749, section 5.2. */
    answer: (form: URLSearchParams): ServiceAnswer => {
      const nowMs = clock.now();
      for (const [token, { endsMs }] of sessions) if (nowMs >= endsMs) sessions.delete(token);
      for (const [token, endsMs] of accessTokens) if (nowMs >= endsMs) accessTokens.delete(token);
      const grantType = form.get('grant_type');
      if (grantType === null)
        return refusal(400, 'invalid_request', 'Missing form parameter: grant_type');
      if (form.get('client_id') !== clientId) {
        return refusal(401, 'invalid_client', 'Invalid client or Invalid client credentials');
      }
      if (grantType === 'password') return login(form);
      if (grantType !== 'refresh_token') {
        return refusal(400, 'unsupported_grant_type', 'Unsupported grant_type');
      }
      const session = sessions.get(form.get('refresh_token') ?? '');
      if (session === undefined) return refusal(400, 'invalid_grant', 'Token is not active');
      return issue(session);
    },
    /** Returns true for an issued access token that has not expired. */
    accepts: (token: string): boolean => clock.now() < (accessTokens.get(token) ?? 0),
  };
}

function refusal(status: number, error: string, description: string): ServiceAnswer {
  return { status, body: { error, error_description: description } };
}

/** Creates the check of one-time codes (RFC 6238): accepts a code of the current, previous or next 30 s, once. */
function createOneTimeCodes(clock: SandboxClock) {
  const used = new Set<number>();
  return (secretBase32: string, token: string | null): boolean => {
    const timestamp = clock.now();
    const totp = new TOTP({ secret: Secret.fromBase32(secretBase32) });
    const delta = totp.validate({ token: token ?? '', timestamp, window: 1 });
    if (delta === null) return false;
    const period = totp.counter({ timestamp }) + delta;
    return !used.has(period) && used.add(period).has(period);
  };
}

interface Environment {
  readonly Bindings: HttpBindings;
  /** Entry in the request log. */
  readonly Variables: { logged: { grantType?: string } };
}

/** Creates the app of the realm, with Keycloak's answers. */
export function createIdentityApp(
  provider: IdentityProvider,
  liveSettings: LiveServiceSettings,
): Hono<Environment> {
  const app = new Hono<Environment>();
  app.use(({ env }, next) => {
    if (!liveSettings.current().identityUnavailable) return next();
    // The answer of a proxy in front of the provider: HTML, not JSON.
    return writeAnswer(page(503, 'Service Unavailable'), env.outgoing);
  });
  app.post(tokenPath, async ({ req, env, get }) => {
    const form = new URLSearchParams(await req.text());
    const grantType = grants.find((grant) => grant === form.get('grant_type'));
    if (grantType !== undefined) get('logged').grantType = grantType;
    const { headers, ...answer } = provider.answer(form);
    const uncached = { ...headers, 'Cache-Control': 'no-store', Pragma: 'no-cache' };
    return writeAnswer({ ...answer, headers: uncached }, env.outgoing);
  });
  app.all('*', (context) => context.json({ error: 'HTTP 404 Not Found' }, 404));
  return app;
}
