/** Identity provider like Keycloak: logins, sessions, tokens and discovery. */
import type { HttpBindings } from '@hono/node-server';
import { Hono } from 'hono';
import { Secret, TOTP } from 'otpauth';
import type { Random, SandboxClock } from '../clock.ts';
import type { LiveServiceSettings } from '../live-settings.ts';
import { pageOf, type ServiceAnswer, writeAnswer } from './service-answer.ts';

/** Path of the realm, below the origin. */
export const realmPath = '/auth/realms/CDSE';

/** Path of the token endpoint, below the realm. */
export const tokenPath = '/protocol/openid-connect/token';

/** The only known client: the public one of the real service. */
const clientId = 'cdse-public';
const grants = ['password', 'refresh_token'];
const tokenDigits = 64;
// Limits memory under endless refreshes.
const accessTokensMax = 10_000;

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
  /** Key: refresh token. */
  const sessions = new Map<string, Session>();
  const accessTokens = createAccessTokens(clock, random);

  const issue = ({ id, refreshToken, endsMs }: Session, nowMs: number): ServiceAnswer => {
    const accessMs = Math.min(liveSettings.current().accessTokenSeconds * 1_000, endsMs - nowMs);
    const body = {
      access_token: accessTokens.issue(nowMs + accessMs),
      expires_in: Math.floor(accessMs / 1_000),
      refresh_expires_in: Math.floor((endsMs - nowMs) / 1_000),
      refresh_token: refreshToken,
      token_type: 'Bearer',
      'not-before-policy': 0,
      session_state: id,
      scope: 'profile email',
    };
    return { status: 200, body };
  };
  const login = (form: URLSearchParams, nowMs: number): ServiceAnswer => {
    const { totpSecret, accountActive, sessionsMax, refreshTokenSeconds } = liveSettings.current();
    const { username, password } = account;
    const known = form.get('username') === username && form.get('password') === password;
    // Checked first: a wrong password must not consume the code.
    if (!known || (totpSecret !== null && !acceptCode(totpSecret, form.get('totp')))) {
      return refusal(401, 'invalid_grant', 'Invalid user credentials');
    }
    if (!accountActive) return refusal(400, 'invalid_grant', 'Account is not fully set up');
    // Keycloak's session limiter answers with an HTML page, even without a browser.
    if (sessions.size >= sessionsMax) return pageAnswer(403, 'There are too many sessions');
    const endsMs = nowMs + refreshTokenSeconds * 1_000;
    const session = { id: random.uuid(), refreshToken: random.hex(tokenDigits), endsMs };
    sessions.set(session.refreshToken, session);
    return issue(session, nowMs);
  };

  return {
    /** Answers a token request; errors as in RFC 6749, section 5.2. */
    answer: (form: URLSearchParams): ServiceAnswer => {
      const nowMs = clock.now();
      for (const { refreshToken, endsMs } of sessions.values()) {
        if (nowMs >= endsMs) sessions.delete(refreshToken);
      }
      const grantType = form.get('grant_type');
      if (grantType === null)
        return refusal(400, 'invalid_request', 'Missing form parameter: grant_type');
      if (form.get('client_id') !== clientId) {
        return refusal(401, 'invalid_client', 'Invalid client or Invalid client credentials');
      }
      if (grantType === 'password') return login(form, nowMs);
      if (grantType !== 'refresh_token') {
        return refusal(400, 'unsupported_grant_type', 'Unsupported grant_type');
      }
      const refreshToken = form.get('refresh_token');
      if (refreshToken === null) return refusal(400, 'invalid_request', 'No refresh token');
      const session = sessions.get(refreshToken);
      if (session === undefined) return refusal(400, 'invalid_grant', 'Token is not active');
      return issue(session, nowMs);
    },
    accepts: accessTokens.accepts,
  };
}

function createAccessTokens(clock: SandboxClock, random: Random) {
  /** Expiry by token, ms since 1970. */
  const endsMs = new Map<string, number>();
  return {
    issue: (tokenEndsMs: number): string => {
      const token = random.hex(tokenDigits);
      endsMs.set(token, tokenEndsMs);
      const [oldest] = endsMs.keys();
      if (oldest !== undefined && endsMs.size > accessTokensMax) endsMs.delete(oldest);
      return token;
    },
    /** Returns true for an issued access token that has not expired. */
    accepts: (token: string): boolean => clock.now() < (endsMs.get(token) ?? 0),
  };
}

function refusal(status: number, error: string, description: string): ServiceAnswer {
  return { status, body: { error, error_description: description } };
}

function pageAnswer(status: number, text: string): ServiceAnswer {
  return { status, body: pageOf(text), headers: { 'Content-Type': 'text/html; charset=UTF-8' } };
}

const codePeriodMs = 30_000;
const codeStepsAround = 1;

/**
 * Creates the check of one-time codes (RFC 6238, six digits, 30 s). It accepts an unused code of the
 * current, previous or next 30 s, once.
 */
function createOneTimeCodes(clock: SandboxClock) {
  let used: readonly string[] = [];
  return (secretBase32: string, code: string | null): boolean => {
    if (code === null) return false;
    const timestamp = clock.now();
    const totp = new TOTP({ secret: Secret.fromBase32(secretBase32) });
    const delta = totp.validate({ token: code, timestamp, window: codeStepsAround });
    if (delta === null) return false;
    const use = `${secretBase32} ${Math.floor(timestamp / codePeriodMs) + delta}`;
    if (used.includes(use)) return false;
    // Codes before the window cannot be accepted again: the clock never moves back.
    used = [...used, use].slice(-2 * codeStepsAround - 1);
    return true;
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
    return writeAnswer(pageAnswer(503, 'Service Unavailable'), env.outgoing);
  });
  app.get('/.well-known/openid-configuration', (context) =>
    context.json(discoveryOf(new URL(context.req.url).origin)),
  );
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

/** Returns the parts of the recorded discovery document that clients need. */
function discoveryOf(origin: string): object {
  return {
    issuer: `${origin}${realmPath}`,
    token_endpoint: `${origin}${realmPath}${tokenPath}`,
    grant_types_supported: grants,
    response_types_supported: ['code'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['RS256'],
    token_endpoint_auth_methods_supported: ['client_secret_post'],
  };
}
