/** The identity provider, in the manner of Keycloak: logins and their sessions, tokens, and discovery. */
import { Hono } from 'hono';
import { Secret, TOTP } from 'otpauth';
import type { SandboxClock } from '../clock.ts';
import type { Random } from '../random.ts';
import type { ServiceKnobs } from './service-settings.ts';

/** Path of the realm, below the origin. */
export const realmPath = '/auth/realms/CDSE';

/** Path of the token endpoint, below the realm. */
export const tokenPath = '/protocol/openid-connect/token';

/** The only client there is: the public one of the real service. */
const clientId = 'cdse-public';
const grants = ['password', 'refresh_token'];
const tokenDigits = 64;
// Without a bound, endless refreshes would fill the memory.
const accessTokensMax = 10_000;

/** What a login or a refresh returns. */
interface IssuedTokens {
  readonly accessToken: string;
  readonly accessSeconds: number;
  readonly refreshToken: string;
  /** What is left of the session. */
  readonly refreshSeconds: number;
  readonly sessionId: string;
}

/** Why there are no tokens: status, `error` and `error_description`. */
type Refusal = readonly [status: 400 | 401, error: string, description: string];

const refusals = {
  credentials: [401, 'invalid_grant', 'Invalid user credentials'],
  'not-set-up': [400, 'invalid_grant', 'Account is not fully set up'],
  'refresh-token': [400, 'invalid_grant', 'Token is not active'],
} as const;

type TokenRefusal = keyof typeof refusals | 'too-many-sessions';

interface Session {
  readonly id: string;
  readonly refreshToken: string;
  readonly endsMs: number;
}

export type IdentityProvider = ReturnType<typeof createIdentityProvider>;

/** Creates a provider without sessions for one user. Tokens are opaque, and live by the sandbox's clock. */
export function createIdentityProvider({
  account,
  knobs,
  clock,
  random,
}: {
  readonly account: { readonly username: string; readonly password: string };
  readonly knobs: ServiceKnobs;
  readonly clock: SandboxClock;
  readonly random: Random;
}) {
  const takeCode = createOneTimeCodes(clock);
  /** By refresh token, which stays the same as long as the session lives. */
  const sessions = new Map<string, Session>();
  /** When each access token ends, ms since 1970. */
  const accessEndsMs = new Map<string, number>();

  const dropEnded = (nowMs: number) => {
    for (const { refreshToken, endsMs } of sessions.values()) {
      if (nowMs >= endsMs) sessions.delete(refreshToken);
    }
  };
  const issue = ({ id, refreshToken, endsMs }: Session, nowMs: number): IssuedTokens => {
    const accessToken = random.hex(tokenDigits);
    const accessMs = Math.min(knobs.current().accessTokenSeconds * 1_000, endsMs - nowMs);
    accessEndsMs.set(accessToken, nowMs + accessMs);
    const [oldest] = accessEndsMs.keys();
    if (oldest !== undefined && accessEndsMs.size > accessTokensMax) accessEndsMs.delete(oldest);
    return {
      accessToken,
      accessSeconds: Math.floor(accessMs / 1_000),
      refreshToken,
      refreshSeconds: Math.floor((endsMs - nowMs) / 1_000),
      sessionId: id,
    };
  };

  return {
    /** Opens a session. A wrong password, and a code that is missing, wrong or used, are all `credentials`. */
    login: (
      username: string | null,
      password: string | null,
      code: string | null,
    ): IssuedTokens | TokenRefusal => {
      const { totpSecret, accountActive, sessionsMax, refreshTokenSeconds } = knobs.current();
      const known = username === account.username && password === account.password;
      // The password first: a wrong one must not use up the code.
      if (!known || (totpSecret !== null && !takeCode(totpSecret, code))) return 'credentials';
      if (!accountActive) return 'not-set-up';
      const nowMs = clock.now();
      dropEnded(nowMs);
      if (sessions.size >= sessionsMax) return 'too-many-sessions';
      const endsMs = nowMs + refreshTokenSeconds * 1_000;
      const session = { id: random.uuid(), refreshToken: random.hex(tokenDigits), endsMs };
      sessions.set(session.refreshToken, session);
      return issue(session, nowMs);
    },
    /** Issues another access token for a session that still lives. */
    refresh: (refreshToken: string): IssuedTokens | TokenRefusal => {
      const nowMs = clock.now();
      dropEnded(nowMs);
      const session = sessions.get(refreshToken);
      return session === undefined ? 'refresh-token' : issue(session, nowMs);
    },
    /** Returns true for an access token that was issued and has not expired. */
    accepts: (accessToken: string): boolean => {
      const endsMs = accessEndsMs.get(accessToken);
      return endsMs !== undefined && clock.now() < endsMs;
    },
  };
}

const codePeriodMs = 30_000;
const codeStepsAround = 1;

/**
 * Creates the check of one-time codes (RFC 6238, six digits, 30 s), each good once: true when the code
 * belongs to now, or to the 30 s before or after, and was not used before.
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
    // Only the steps of the window can be asked for again; the clock never goes back.
    used = [...used, use].slice(-2 * codeStepsAround - 1);
    return true;
  };
}

interface Environment {
  /** The entry in the log of requests. */
  readonly Variables: { logged: { grantType?: string } };
}

/** Creates the app of the realm; answers as Keycloak does, errors included (RFC 6749, 5.2). */
export function createIdentityApp(
  provider: IdentityProvider,
  knobs: ServiceKnobs,
): Hono<Environment> {
  const app = new Hono<Environment>();
  app.use((context, next) => {
    if (!knobs.current().identityUnavailable) return next();
    // A proxy stands before the provider; it knows no JSON.
    return Promise.resolve(context.html(pageOf('Service Unavailable'), 503));
  });
  app.get('/.well-known/openid-configuration', (context) =>
    context.json(discoveryOf(new URL(context.req.url).origin)),
  );
  app.post(tokenPath, async (context) => {
    context.header('Cache-Control', 'no-store');
    context.header('Pragma', 'no-cache');
    const form = new URLSearchParams(await context.req.text());
    const grantType = grants.find((grant) => grant === form.get('grant_type'));
    if (grantType !== undefined) context.get('logged').grantType = grantType;
    const result = issue(provider, form);
    if (result === 'too-many-sessions') {
      // Keycloak's limiter answers a login without a browser with a page, too.
      return context.html(pageOf('There are too many sessions'), 403);
    }
    if (typeof result === 'object' && 'accessToken' in result)
      return context.json(toAnswer(result));
    const [status, error, description] = typeof result === 'string' ? refusals[result] : result;
    return context.json({ error, error_description: description }, status);
  });
  app.all('*', (context) => context.json({ error: 'HTTP 404 Not Found' }, 404));
  return app;
}

function issue(
  provider: IdentityProvider,
  form: URLSearchParams,
): IssuedTokens | TokenRefusal | Refusal {
  const grantType = form.get('grant_type');
  if (grantType === null) return [400, 'invalid_request', 'Missing form parameter: grant_type'];
  if (form.get('client_id') !== clientId) {
    return [401, 'invalid_client', 'Invalid client or Invalid client credentials'];
  }
  if (grantType === 'password') {
    return provider.login(form.get('username'), form.get('password'), form.get('totp'));
  }
  if (grantType !== 'refresh_token') {
    return [400, 'unsupported_grant_type', 'Unsupported grant_type'];
  }
  const refreshToken = form.get('refresh_token');
  if (refreshToken === null) return [400, 'invalid_request', 'No refresh token'];
  return provider.refresh(refreshToken);
}

function toAnswer(issued: IssuedTokens): object {
  return {
    access_token: issued.accessToken,
    expires_in: issued.accessSeconds,
    refresh_expires_in: issued.refreshSeconds,
    refresh_token: issued.refreshToken,
    token_type: 'Bearer',
    'not-before-policy': 0,
    session_state: issued.sessionId,
    scope: 'profile email',
  };
}

/** Returns what a client needs of the recorded document. */
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

function pageOf(text: string): string {
  return `<!doctype html><html lang="en"><title>${text}</title><h1>${text}</h1></html>`;
}
