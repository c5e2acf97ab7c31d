/** Failures of ACME requests by type, and their messages for the user. */
import { AppError } from '../../domain/app-error.ts';
import { foreignText } from '../../http/foreign-text.ts';

/** Problem of RFC 8555, section 6.7, or `unreachable` without an answer. */
export class AcmeProblem extends Error {
  /** For example `rateLimited`, without `urn:ietf:params:acme:error:`; or one of our own types. */
  readonly type: string;
  /** Message of the authority (foreign text); for our own types, our text. */
  readonly detail: string;
  /** Requested delay before a retry; null without one. */
  readonly retryAfterMs: number | null;

  constructor(type: string, detail: string, retryAfterMs: number | null = null) {
    super(`${type}: ${detail}`);
    this.name = 'AcmeProblem';
    this.type = type;
    this.detail = detail;
    this.retryAfterMs = retryAfterMs;
  }
}

export function isAcmeProblem(error: unknown, type?: string): error is AcmeProblem {
  return error instanceof AcmeProblem && (type === undefined || error.type === type);
}

const transientTypes: ReadonlySet<string> = new Set([
  'unreachable',
  'rateLimited',
  'serverInternal',
  'malformedAnswer',
]);

/** True if the same request may succeed later. */
export function isTransient(error: unknown): boolean {
  return error instanceof AcmeProblem && transientTypes.has(error.type);
}

/** Types of failed validations (RFC 8555, 6.7 and 8). */
const challengeTypes: ReadonlySet<string> = new Set([
  'dns',
  'connection',
  'unauthorized',
  'incorrectResponse',
  'tls',
  'caa',
  'compound',
]);

/** True if the validation of the name failed: the problem is on our side, not at the authority. */
export function isChallengeProblem(error: unknown): error is AcmeProblem {
  return error instanceof AcmeProblem && challengeTypes.has(error.type);
}

/** Returns the last part of the type; `other` for a type outside ACME. */
export function problemType(urn: string | undefined): string {
  return /^urn:ietf:params:acme:error:(\w{1,50})$/.exec(urn ?? '')?.[1] ?? 'other';
}

interface FailedOrder {
  host: string;
  challenge: 'http-01' | 'tls-alpn-01';
  directoryUrl: string;
}

const detailCharactersMax = 400;

type Sentences = (order: FailedOrder, authority: string) => [message: string, advice: string];

const challengePort = { 'http-01': 80, 'tls-alpn-01': 443 } as const;

const answeredElsewhere: Sentences = ({ host, challenge }) => [
  `Another server answered for ${host} on port ${challengePort[challenge]}.`,
  `Set the A and AAAA records of the name to this host, and ${forwardPort[challenge]}.`,
];

const nameRefused: Sentences = ({ host }, authority) => [
  `${authority} does not issue certificates for ${host}.`,
  'Correct the name in EARSHOT_PUBLIC_URL, or use another authority (EARSHOT_ACME_DIRECTORY).',
];

const contactRefused: Sentences = (_order, authority) => [
  `${authority} does not accept the e-mail address.`,
  'Correct EARSHOT_ACME_EMAIL.',
];

/** Message and advice by type (RFC 8555, 6.7). */
const sentences: Readonly<Record<string, Sentences>> = {
  dns: ({ host }) => [
    `No address was found for ${host}.`,
    'Create an A or AAAA record for this host, or correct EARSHOT_PUBLIC_URL. A new record can take an hour to be visible.',
  ],
  connection: ({ host, challenge }) => [
    `The authority could not connect to port ${challengePort[challenge]} of ${host}.`,
    `Open the port in all firewalls, set the DNS records of the name to this host, and ${forwardPort[challenge]}.`,
  ],
  unauthorized: answeredElsewhere,
  incorrectResponse: answeredElsewhere,
  tls: ({ host }) => [
    `The TLS handshake on port 443 of ${host} failed.`,
    'Forward the port to EARSHOT_LISTEN, without a proxy that terminates HTTPS. Or set EARSHOT_ACME_CHALLENGE=http-01.',
  ],
  caa: ({ host }, authority) => [
    `A CAA record of ${host} does not allow ${authority}.`,
    'Add this authority to the record, or remove the record.',
  ],
  rejectedIdentifier: nameRefused,
  unsupportedIdentifier: nameRefused,
  rateLimited: (_order, authority) => [
    `${authority} received too many requests.`,
    'No action is needed: the next attempt is automatic.',
  ],
  externalAccountRequired: (_order, authority) => [
    `${authority} requires an external account binding.`,
    `Set EARSHOT_ACME_EAB_KEY_ID and EARSHOT_ACME_EAB_HMAC_KEY to the values from your account at ${authority}.`,
  ],
  accountRefused: (_order, authority) => [
    `${authority} does not accept the account.`,
    'If you use an external account binding, correct EARSHOT_ACME_EAB_KEY_ID and EARSHOT_ACME_EAB_HMAC_KEY. If the account was closed, move the account file (acme/account-….json in the data directory) to another folder.',
  ],
  invalidContact: contactRefused,
  unsupportedContact: contactRefused,
  userActionRequired: (_order, authority) => [
    `${authority} requires an action first, such as an agreement to new terms.`,
    'Follow the instructions of the authority.',
  ],
  accountDoesNotExist: (_order, authority) => [
    `${authority} no longer has the account.`,
    'No action is needed: the next attempt creates a new account.',
  ],
  serverInternal: (_order, authority) => [
    `${authority} has an internal error.`,
    'No action is needed: the next attempt is automatic.',
  ],
  unreachable: (_order, authority) => [
    `${authority} cannot be reached.`,
    'Check the network and EARSHOT_ACME_DIRECTORY. For a private authority, set EARSHOT_ACME_CA to its root certificate.',
  ],
  malformedAnswer: (_order, authority) => [
    `The answer of ${authority} is not valid ACME.`,
    'Set EARSHOT_ACME_DIRECTORY to the URL of the ACME directory.',
  ],
  unusableCertificate: (_order, authority) => [
    `${authority} issued a certificate that cannot be used.`,
    'Check the clock of this host, and the status page of the authority.',
  ],
  noChallenge: ({ challenge }, authority) => [
    `${authority} does not offer ${challenge}.`,
    `Set EARSHOT_ACME_CHALLENGE=${challenge === 'http-01' ? 'tls-alpn-01' : 'http-01'}.`,
  ],
  timeout: (_order, authority) => [
    `${authority} did not complete the order in time.`,
    'No action is needed: the next attempt resumes the order.',
  ],
};

const forwardPort = {
  'http-01': 'forward port 80 to EARSHOT_ACME_HTTP_LISTEN',
  'tls-alpn-01': 'forward port 443 to EARSHOT_LISTEN',
} as const;

/** Returns an AppError for any error. The text of an unexpected one is not shown. */
export function explainFailure(error: unknown, order: FailedOrder): AppError {
  if (error instanceof AppError) return error;
  const authority = new URL(order.directoryUrl).host;
  if (!(error instanceof AcmeProblem)) {
    return new AppError('internal', `The order at ${authority} failed.`, { cause: error });
  }
  // The type is foreign text, and may be the name of a property that every object has.
  const known = Object.hasOwn(sentences, error.type) ? sentences[error.type] : undefined;
  const [message, advice] = (known ?? refused)(order, authority);
  const detail = foreignText(error.detail, { secrets: [], charactersMax: detailCharactersMax });
  return new AppError('unavailable', message, {
    advice: `${advice} (${error.type}: ${detail})`,
    cause: error,
  });
}

const refused: Sentences = ({ host }, authority) => [
  `${authority} refused the order for ${host}.`,
  'If this repeats, search the web for the message of the authority.',
];
