/** What testssl.sh may find without failing the scan, each with its reason. */

/** One finding of its JSON file. */
export interface Finding {
  readonly id: string;
  readonly severity: string;
  readonly finding: string;
}

/** From this severity on a finding needs a reason. */
const severitiesThatCount: readonly string[] = ['LOW', 'MEDIUM', 'HIGH', 'CRITICAL', 'FATAL'];

/** Of the certificate that the scan makes for itself, or of a machine without a public name. */
const accepted: Readonly<Record<string, string>> = {
  cert_expirationStatus: 'the certificate of the scan lives for 30 days',
  cert_notAfter: 'the certificate of the scan lives for 30 days',
  cert_revocation:
    'nobody revokes the certificate of the scan; real ones carry what their authority gives',
  DNS_CAArecord: 'localhost has no records',
};

export interface JudgedFinding extends Finding {
  /** Null: it must not be. */
  readonly reason: string | null;
}

/** Those that need a reason, with it. */
export function judgeFindings(findings: readonly Finding[]): JudgedFinding[] {
  return findings
    .filter(({ severity }) => severitiesThatCount.includes(severity))
    .map((one) => ({ ...one, reason: accepted[one.id] ?? null }));
}
