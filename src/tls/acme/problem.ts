/** What an authority refused, in the machine's terms: the code that orders decides by these. */
import { AppError } from '../../domain/app-error.ts';
import { foreignText } from '../../http/foreign-text.ts';

/** A refusal as RFC 8555 section 6.7 has it, or `unreachable` when there was no answer at all. */
export class AcmeProblem extends Error {
  /** Without `urn:ietf:params:acme:error:`, such as `rateLimited`; else `http` or `unreachable`. */
  readonly type: string;
  /** The authority's own words: foreign text. For `unreachable`, ours. */
  readonly detail: string;
  /** How long it asks us to wait; null when it does not say. */
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

const passing: ReadonlySet<string> = new Set([
  'unreachable',
  'rateLimited',
  'serverInternal',
  'malformedAnswer',
]);

/** True for what says nothing of the request: the same one may be granted later. */
export function isTransient(error: unknown): boolean {
  return error instanceof AcmeProblem && passing.has(error.type);
}

/** What an authority may find when it looks whether a name is ours (RFC 8555, 6.7 and 8). */
const proofTypes: ReadonlySet<string> = new Set([
  'dns',
  'connection',
  'unauthorized',
  'incorrectResponse',
  'tls',
  'caa',
  'compound',
]);

/** True where the proof has failed: what has to be put right is here, not at the authority. */
export function isChallengeProblem(error: unknown): error is AcmeProblem {
  return error instanceof AcmeProblem && proofTypes.has(error.type);
}

/** The type's last part; `other` for one that is no ACME error. */
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
  `Something else answered for ${host} on port ${challengePort[challenge]}.`,
  `Let the name lead to this host (A and AAAA records alike), and let ${leadsTo[challenge]}.`,
];

const nameRefused: Sentences = ({ host }, authority) => [
  `${authority} issues nothing for ${host}.`,
  'Correct the name in EARSHOT_PUBLIC_URL, or use another authority (EARSHOT_ACME_DIRECTORY).',
];

const contactRefused: Sentences = (_order, authority) => [
  `${authority} does not take the e-mail address.`,
  'Correct EARSHOT_ACME_EMAIL.',
];

/** By the type of RFC 8555, 6.7: what it means here, and what to do. */
const sentences: Readonly<Record<string, Sentences>> = {
  dns: ({ host }) => [
    `No address was found for ${host}.`,
    'Let an A or AAAA record of that name lead to this host, or correct EARSHOT_PUBLIC_URL; a new record may take an hour to be seen.',
  ],
  connection: ({ host, challenge }) => [
    `Port ${challengePort[challenge]} of ${host} could not be reached.`,
    `Open it in every firewall on the way, let the name lead to this host, and let ${leadsTo[challenge]}.`,
  ],
  unauthorized: answeredElsewhere,
  incorrectResponse: answeredElsewhere,
  tls: ({ host }) => [
    `The handshake on port 443 of ${host} failed.`,
    'Let that port lead to EARSHOT_LISTEN, without a proxy that ends HTTPS on the way; or use EARSHOT_ACME_CHALLENGE=http-01.',
  ],
  caa: ({ host }, authority) => [
    `A CAA record of ${host} forbids ${authority} to issue.`,
    'Add this authority to the record, or take the record away.',
  ],
  rejectedIdentifier: nameRefused,
  unsupportedIdentifier: nameRefused,
  rateLimited: (_order, authority) => [
    `${authority} has had too many requests for now.`,
    'Nothing has to be put right here; it takes time.',
  ],
  externalAccountRequired: (_order, authority) => [
    `${authority} asks for an account that is bound to one of yours there.`,
    'Set EARSHOT_ACME_EAB_KEY_ID and EARSHOT_ACME_EAB_HMAC_KEY as it gave them to you.',
  ],
  accountRefused: (_order, authority) => [
    `${authority} does not accept the account.`,
    'If it is bound to one of yours there, correct EARSHOT_ACME_EAB_KEY_ID and EARSHOT_ACME_EAB_HMAC_KEY; if it was closed there, move its file (acme/account-….json in the data directory) away.',
  ],
  invalidContact: contactRefused,
  unsupportedContact: contactRefused,
  userActionRequired: (_order, authority) => [
    `${authority} wants you to do something first, such as to agree to new terms.`,
    'Follow what it says.',
  ],
  accountDoesNotExist: (_order, authority) => [
    `${authority} does not know the account any more.`,
    'It is made anew with the next try.',
  ],
  serverInternal: (_order, authority) => [
    `${authority} has a fault of its own.`,
    'Nothing has to be put right here; it takes time.',
  ],
  unreachable: (_order, authority) => [
    `${authority} cannot be asked.`,
    "Look at this host's network and at EARSHOT_ACME_DIRECTORY; for a private authority, name its root in EARSHOT_ACME_CA.",
  ],
  malformedAnswer: (_order, authority) => [
    `${authority} does not answer as a certificate authority does.`,
    'Correct EARSHOT_ACME_DIRECTORY: it is the URL of the directory itself.',
  ],
  unusableCertificate: (_order, authority) => [
    `${authority} has issued a certificate that cannot be used.`,
    "Look at the clock of this host, and at what the authority's own pages say.",
  ],
  noChallenge: ({ challenge }, authority) => [
    `${authority} does not offer ${challenge}.`,
    'Set EARSHOT_ACME_CHALLENGE to the other kind.',
  ],
  timeout: (_order, authority) => [
    `${authority} did not come to an end in time.`,
    'The order stays, and is taken up again with the next try.',
  ],
};

const leadsTo = {
  'http-01': 'port 80 lead to EARSHOT_ACME_HTTP_LISTEN',
  'tls-alpn-01': 'port 443 lead to EARSHOT_LISTEN',
} as const;

/** An AppError stays as it is; of what nobody foresaw only the kind is told. */
export function explainFailure(error: unknown, order: FailedOrder): AppError {
  if (error instanceof AppError) return error;
  const authority = new URL(order.directoryUrl).host;
  if (!(error instanceof AcmeProblem)) {
    return new AppError('internal', `The order at ${authority} failed.`, { cause: error });
  }
  // The type is foreign text: it may also be the name of what every object has.
  const known = Object.hasOwn(sentences, error.type) ? sentences[error.type] : undefined;
  const [message, advice] = (known ?? refused)(order, authority);
  const said = foreignText(error.detail, { secrets: [], charactersMax: detailCharactersMax });
  return new AppError('unavailable', message, {
    advice: `${advice} (${error.type}: ${said})`,
    cause: error,
  });
}

const refused: Sentences = ({ host }, authority) => [
  `${authority} has refused the order for ${host}.`,
  'If it stays so, look up what it says.',
];
