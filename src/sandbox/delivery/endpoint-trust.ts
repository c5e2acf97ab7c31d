/** Decides which endpoint certificates the sender accepts: publicly trusted ones, never self-signed ones. */
import { X509Certificate } from 'node:crypto';
import {
  checkServerIdentity,
  createSecureContext,
  getCACertificates,
  type PeerCertificate,
  type SecureContext,
} from 'node:tls';
import { SandboxConfigurationError } from '../configuration-error.ts';

export interface EndpointTrust {
  readonly secureContext: SecureContext;
  /** Given to the TLS client: an Error when the certificate is for another host or vouches for itself. */
  readonly checkServerIdentity: (host: string, certificate: PeerCertificate) => Error | undefined;
}

/**
 * Trusts Node's and the system's authorities and those in `trustedCaPems` (PEM, one or more
 * certificates each). Throws SandboxConfigurationError for text that is not a certificate.
 */
export function createEndpointTrust(trustedCaPems: readonly string[]): EndpointTrust {
  trustedCaPems.forEach(assertCertificate);
  const authorities = new Set([
    ...getCACertificates('default'),
    ...getCACertificates('system'),
    ...trustedCaPems,
  ]);
  return {
    // Made once: reading some hundred authorities anew for every connection would cost more than the handshake.
    secureContext: createSecureContext({ ca: [...authorities] }),
    checkServerIdentity: (host, certificate) =>
      checkServerIdentity(host, certificate) ?? refuseSelfSigned(certificate),
  };
}

function refuseSelfSigned({ raw }: PeerCertificate): Error | undefined {
  const leaf = new X509Certificate(raw);
  // Being told to trust such a certificate does not help: the catalogue would refuse it all the same.
  if (leaf.subject !== leaf.issuer || !leaf.verify(leaf.publicKey)) return undefined;
  const error = new Error(
    'the certificate is self-signed; the catalogue refuses such certificates',
  );
  return Object.assign(error, { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' });
}

function assertCertificate(pem: string, index: number): void {
  try {
    new X509Certificate(pem);
  } catch (cause) {
    throw new SandboxConfigurationError(
      `The trusted authority number ${index + 1} is not a certificate in PEM form. Give the text of the authority's root certificate, from BEGIN CERTIFICATE to END CERTIFICATE.`,
      { cause },
    );
  }
}
