/** The HTTP side of the identity provider, in the manner of Keycloak: tokens and discovery. */
import { Hono } from 'hono';
import type { IdentityProvider, IssuedTokens, TokenRefusal } from './identity-provider.ts';
import type { ServiceEnvironment } from './service-environment.ts';
import type { ServiceKnobs } from './service-settings.ts';

/** Where the realm is, below the origin. */
export const realmPath = '/auth/realms/CDSE';
/** Where tokens are asked for, below the realm. */
export const tokenPath = '/protocol/openid-connect/token';

/** The only client there is: the public one of the real service. */
const clientId = 'cdse-public';
const grants = ['password', 'refresh_token'];

interface Refusal {
  readonly status: 400 | 401;
  readonly error: string;
  readonly description: string;
}

const refusals: Record<Exclude<TokenRefusal, 'too-many-sessions'>, Refusal> = {
  credentials: refusal(401, 'invalid_grant', 'Invalid user credentials'),
  'not-set-up': refusal(400, 'invalid_grant', 'Account is not fully set up'),
  'refresh-token': refusal(400, 'invalid_grant', 'Token is not active'),
};

/** Creates the app of the realm; answers as Keycloak does, errors included (RFC 6749, 5.2). */
export function createIdentityApp(
  provider: IdentityProvider,
  knobs: ServiceKnobs,
): Hono<ServiceEnvironment> {
  const app = new Hono<ServiceEnvironment>();
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
      // So does Keycloak's limiter answer a login without a browser, too: with a page.
      return context.html(pageOf('There are too many sessions'), 403);
    }
    if (!('error' in result)) return context.json(toAnswer(result));
    const { status, error, description } = result;
    return context.json({ error, error_description: description }, status);
  });
  app.all('*', (context) => context.json({ error: 'HTTP 404 Not Found' }, 404));
  return app;
}

function issue(
  provider: IdentityProvider,
  form: URLSearchParams,
): IssuedTokens | Refusal | 'too-many-sessions' {
  const grantType = form.get('grant_type');
  if (grantType === null) {
    return refusal(400, 'invalid_request', 'Missing form parameter: grant_type');
  }
  if (form.get('client_id') !== clientId) {
    return refusal(401, 'invalid_client', 'Invalid client or Invalid client credentials');
  }
  if (grantType === 'password') return toResult(login(provider, form));
  if (grantType !== 'refresh_token') {
    return refusal(400, 'unsupported_grant_type', 'Unsupported grant_type');
  }
  const refreshToken = form.get('refresh_token');
  if (refreshToken === null) return refusal(400, 'invalid_request', 'No refresh token');
  return toResult(provider.refresh(refreshToken));
}

function login(provider: IdentityProvider, form: URLSearchParams) {
  const username = form.get('username') ?? '';
  const password = form.get('password') ?? '';
  return provider.login({ username, password, code: form.get('totp') });
}

function refusal(status: Refusal['status'], error: string, description: string): Refusal {
  return { status, error, description };
}

function toResult(result: IssuedTokens | TokenRefusal) {
  return typeof result === 'object' || result === 'too-many-sessions' ? result : refusals[result];
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

/** What a client needs of the recorded document. */
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
