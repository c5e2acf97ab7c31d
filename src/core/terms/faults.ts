/** Faults from outside the program: of the network, certificates, logins, files and SQLite, each with its next step. */
import { AppError, type ErrorCode, errorCodeOf } from './app-error.ts';

export interface Fault {
  /** Also the heading in docs/errors.md. */
  code: string;
  /** The problem, to follow a colon: "the disk is full". */
  clause: string;
  /** In whole sentences. */
  nextStep: string;
  /** For docs/errors.md; empty if the sentence and the next step say everything. */
  explanation: string;
}

type Row = readonly [
  code: string,
  /** Codes of Node, OpenSSL, SQLite or ACME, and statuses. */
  platform: RegExp,
  clause: string,
  nextStep: string,
  explanation?: string,
];

/** The first row that matches applies. */
const rows: readonly Row[] = [
  [
    'name-not-found',
    /\b(ENOTFOUND|EAI_\w+)|^acme dns$/,
    'the host name cannot be resolved',
    'Correct the name, or set its A and AAAA records to the public addresses of the host.',
    'The catalogue and certificate authorities use public DNS: a name in a hosts file or in a private network is not sufficient, and an outdated record leads to another host. `dig NAME` shows the public records. A new record can take minutes, a changed one hours. If every name fails, the DNS of this machine does not work.',
  ],
  [
    'connection-refused',
    /\bECONNREFUSED/,
    'the connection was refused',
    'Start the program that listens there (the receiver: `earshot start`), or correct the host and the port.',
    'If the receiver runs, a router possibly does not allow connections from its own network to its public address: see `no-answer`.',
  ],
  [
    'no-route',
    /\b(EHOSTUNREACH|ENETUNREACH|ENETDOWN)/,
    'there is no network route to the host',
    'Check the network of this machine, and the A and AAAA records of the host.',
  ],
  [
    'no-answer',
    /\b(ETIMEDOUT|UND_ERR_\w*TIMEOUT|TimeoutError)/,
    'it did not answer in time',
    'Open the port in all firewalls, and check the A and AAAA records of the host.',
    'Many routers do not allow connections from their own network to their public address (no hairpin NAT). Then a test on this machine fails, although the Internet reaches the receiver: test from another network.',
  ],
  [
    'certificate-chain',
    /UNABLE_TO_GET_ISSUER_CERT\b|UNABLE_TO_VERIFY_LEAF/,
    'the authority is unknown, or intermediate certificates are missing',
    'Serve the complete chain.',
    'A server sends its certificate and all intermediate ones, in one file: fullchain.pem, not cert.pem. Browsers find missing ones in their caches, the catalogue does not. If the chain is complete, its authority is not publicly trusted; for a test, trust it with EARSHOT_PROBE_CA.',
  ],
  [
    'certificate-expired',
    /CERT_HAS_EXPIRED|CERT_NOT_YET_VALID/,
    'the certificate has expired, or is not valid yet',
    'Renew the certificate and restart its server. Check the clock of this machine (`timedatectl`).',
  ],
  [
    'certificate-name',
    /ALTNAME_INVALID|HOSTNAME_MISMATCH/,
    'the certificate is for another name',
    'Get a certificate for this name, or use the name of the certificate.',
  ],
  [
    'certificate-untrusted',
    /\b(CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|INVALID_CA|ERR_TLS_CERT)/,
    'the certificate is not publicly trusted',
    "Use a certificate of a public authority, such as Let's Encrypt. To test with a private authority, configure its certificate.",
  ],
  [
    'wrong-protocol',
    /\b(EPROTO|ERR_SSL_|ERR_TLS_|HPE_|HTTPParserError)|\bUND_ERR_(?!SOCKET)/,
    'it does not use HTTPS (TLS 1.2 or 1.3) or HTTP as expected',
    'Correct the URL, or check the server on this port: its protocol, certificate and log.',
  ],
  [
    'connection-lost',
    /\b(ECONNRESET|EPIPE|UND_ERR_SOCKET|ECONNABORTED)/,
    'the connection was lost',
    'Check the log of the server on this port, and of the proxy.',
  ],
  [
    'endpoint-redirects',
    /^HTTP 3/,
    'the endpoint redirects, which the catalogue possibly does not follow',
    'Set EARSHOT_PUBLIC_URL to the target of the redirect.',
  ],
  [
    'endpoint-login',
    /^HTTP (401|429)/,
    'the running receiver has other credentials',
    'If the credentials changed after its start, restart the receiver. A proxy must pass on the Authorization header.',
  ],
  [
    'endpoint-not-receiver',
    /^HTTP/,
    'another program or a proxy answers, or the receiver has an error',
    'Check the log of the receiver, and that the port and any proxy lead to it, keep the path /notifications, and add no credentials.',
  ],
  [
    'login-sessions',
    /^login sessions/,
    'the account has too many open sessions',
    'Find the program that logs in too often. Sessions end within an hour, or at the account page.',
  ],
  [
    'login-unavailable',
    /^login unavailable/,
    'it is unavailable, or blocks this machine',
    'Check the network and the DNS of this machine, and retry later. If this happens again, check EARSHOT_TOKEN_URL.',
  ],
  [
    'login-client',
    /^login client/,
    'it returned no token to this client',
    'Check EARSHOT_TOKEN_URL and EARSHOT_CLIENT_ID.',
  ],
  [
    'login-account',
    /^login account/,
    'the account is disabled, not activated, or not fully set up',
    'Log in at the account page with a browser, and complete the steps there.',
  ],
  [
    'login-refused',
    /^login/,
    'it refused the login',
    'Check EARSHOT_ACCOUNT_USERNAME, EARSHOT_ACCOUNT_PASSWORD and, for two-factor login, EARSHOT_ACCOUNT_TOTP.',
    'Two-factor login (TOTP) needs EARSHOT_ACCOUNT_TOTP: the shared secret in base32 from the setup page of the authenticator app, with a correct clock, or a new code of six digits. A code is valid once, for 30 s, so only the secret is sufficient for a receiver that logs in again.',
  ],
  [
    'acme-connection',
    /^acme (connection|incorrectResponse|tls)$/,
    'the authority cannot reach this host',
    'Set the A and AAAA records of the name to this host, and open the port of EARSHOT_ACME_CHALLENGE.',
    'The authority connects from the Internet: to port 80 with http-01, to port 443 with tls-alpn-01. Open the port in all firewalls, and forward it to EARSHOT_ACME_HTTP_LISTEN or EARSHOT_LISTEN. An outdated AAAA record is a frequent cause, because authorities first use IPv6.',
  ],
  [
    'acme-caa',
    /^acme caa$/,
    'a CAA record forbids this authority',
    'Add this authority to the CAA record of the name, or remove the record.',
    'A CAA record in DNS lists the authorities that may issue certificates for a name. It also applies to all names below it. `dig CAA NAME` shows the record; test each parent name, too.',
  ],
  [
    'acme-account',
    /^acme (externalAccountRequired|unauthorized)$/,
    'the authority requires another account',
    'Set EARSHOT_ACME_EAB_KEY_ID and EARSHOT_ACME_EAB_HMAC_KEY to the values from your account at the authority. For a new account, move acme/state.json to another folder.',
  ],
  [
    'acme-failed',
    /^acme/,
    'the authority did not complete the order',
    'The next attempt is automatic. If it fails, too, check EARSHOT_PUBLIC_URL, EARSHOT_ACME_DIRECTORY (the URL of an ACME directory), EARSHOT_ACME_CA and the clock of this host.',
  ],
  [
    'address-not-usable',
    /^listen/,
    'the address or port is in use, not permitted, or not of this machine',
    'Set another address or port.',
    'EADDRINUSE: another program uses the port, possibly another earshot. EACCES: ports below 1024 need the capability CAP_NET_BIND_SERVICE. EADDRNOTAVAIL: this machine has no such address.',
  ],
  ['file-missing', /^ENOENT/, 'there is no such file', 'Correct the path.'],
  [
    'wrong-file-type',
    /^(EISDIR|ENOTDIR|EEXIST)/,
    'a file is in the place of a directory, or the reverse',
    'Correct the path.',
  ],
  [
    'permission-denied',
    /^(EACCES|EPERM)/,
    'permission denied',
    'Run this command as the user that runs earshot, or change the owner of the file to that user.',
    'Files of another owner are usually left by a command that ran as root: `sudo chown -R earshot: DATA_DIR` repairs them. Run commands as the user of the service: `sudo -u earshot earshot …`. In a container, the folder must belong to the user of the container.',
  ],
  [
    'disk-full',
    /^(ENOSPC|EDQUOT|SQLITE_FULL)/,
    'the disk is full',
    'Free some space: intake resumes automatically.',
    'earshot keeps a disk reserve free (EARSHOT_DISK_RESERVE), so that it can still write what it has accepted: when only the reserve is left, the receiver refuses notifications, and the catalogue drops them after three retries. `earshot prune` removes old notifications. Never delete files of the data directory.',
  ],
  [
    'disk-failed',
    /^(EIO|EROFS|SQLITE_IOERR)/,
    'the disk reports an error',
    'Check its free space and the system log.',
  ],
  [
    'database-locked',
    /^SQLITE_(BUSY|LOCKED|PROTOCOL)/,
    'the database is locked by another program',
    'Close that program: intake resumes automatically.',
    'A database browser, a backup program that opens the file, or a copy on a network file system can hold the lock of the database. Copy it with `earshot backup`, and keep the data directory on a local disk. `fuser DATA_DIR/earshot.db` lists the programs that have the file open.',
  ],
  [
    'database-damaged',
    /^SQLITE_(CORRUPT|NOTADB)/,
    'the file is damaged, or is not a database',
    'Stop earshot, keep a copy of the data directory, and restore a backup.',
  ],
  [
    'database-not-writable',
    /^SQLITE_(READONLY|CANTOPEN|PERM)/,
    'SQLite cannot open or write the file',
    'Give the user that runs earshot write permission to the data directory and the files in it, and check that the disk is not full or mounted read-only.',
    'SQLite writes files next to the database, also to read it: the user needs write permission to the folder. The usual cause is a command that ran as root, as with `permission-denied`.',
  ],
  ['no-memory', /^(SQLITE_NOMEM|ENOMEM)/, 'there is too little memory', 'Free some memory.'],
];

const faults = rows.map(([code, platform, clause, nextStep, explanation = '']) => ({
  ...{ platform, code, clause, nextStep, explanation },
}));

/** For docs/errors.md. */
export const allFaults: readonly Fault[] = faults;

/** Returns the fault of a platform code, such as `ECONNREFUSED`; null for an unknown code. */
export function knownFault(platform: string): Fault | null {
  return faults.find((one) => one.platform.test(platform)) ?? null;
}

/** As `knownFault`; the fault of an unknown code has no clause of its own. */
export function faultOf(platform: string): Fault {
  const nextStep = 'Check the log of the other side, and the system log.';
  const code = 'unknown-fault';
  return (
    knownFault(platform) ?? {
      code,
      clause: 'the system reports an error',
      nextStep,
      explanation: '',
    }
  );
}

/** Returns the problem with the platform code: "the disk is full (ENOSPC)". */
export const clauseOf = (platform: string) => `${faultOf(platform).clause} (${platform})`;

/** Returns the next step, with the place of the explanation if there is one. */
export function nextStepOf({ code, nextStep, explanation }: Fault): string {
  return explanation === '' ? nextStep : `${nextStep} See docs/errors.md#${code}.`;
}

/** Returns the error for a fault of the system; `what` says what failed. Its facts have the code of the fault. */
export function faultError(code: ErrorCode, what: string, cause: unknown): AppError {
  const platform = errorCodeOf(cause);
  const fault = faultOf(platform);
  return new AppError(code, `${what}: ${clauseOf(platform)}.`, {
    ...{ advice: nextStepOf(fault), facts: { fault: fault.code }, cause },
  });
}
