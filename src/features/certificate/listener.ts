/** The certificate on the page of subscriptions. */
import type { Status } from '../../core/status/status.ts';
import * as report from '../../core/terms/report.ts';

export function endpointBlocks({ certificate, behindProxy, parts }: Status): report.Block[] {
  const part = parts.find((one) => one.part === 'certificate');
  return [
    report.evaluations(part === undefined ? [] : [['certificate', part]], { all: true }),
    report.facts(
      ['certificate expires (UTC)', report.time(certificate?.notAfterUs)],
      ['last renewal (UTC)', report.time(certificate?.lastSuccessAtUs)],
      ['last attempt (UTC)', report.time(certificate?.lastAttemptAtUs)],
      ['last failure', certificate?.lastFailure ?? null],
    ),
    report.commands(!behindProxy && ['Show the certificate', `earshot certificate show`]),
  ];
}
