/** Says in plain words why NATS did not take an item, and whose fault that is. */
import { JetStreamApiError } from '@nats-io/jetstream';
import { errors } from '@nats-io/transport-node';
import type { SinkTarget } from '../domain/sinks.ts';
import { networkFault } from '../http/bounded-fetch.ts';
import { foreignText, hintCharactersMax } from '../http/foreign-text.ts';
import { coveringSubject } from './nats-subject.ts';
import type { TargetAnswer } from './target.ts';

/** `JSStreamMessageExceedsMaximumErr` of nats-server's errors.json. */
const messageTooLarge = 10_054;

/** Never quotes credentials, which the server's words may hold. `subject` is what was published to. */
export function natsFault(
  error: unknown,
  { credentials, subject: template }: Extract<SinkTarget, { kind: 'nats' }>,
  subject = template,
): TargetAnswer {
  const causes = causesOf(error);
  const has = (...kinds: (abstract new (...args: never) => Error)[]) =>
    causes.some((cause) => kinds.some((kind) => cause instanceof kind));
  if (has(errors.NoRespondersError)) {
    const reason = `no stream listens to the subject ${subject}: make one that listens to ${coveringSubject(template)} (nats stream add)`;
    return { kind: 'misconfigured', reason };
  }
  if (has(errors.AuthorizationError, errors.UserAuthenticationExpiredError)) {
    return { kind: 'misconfigured', reason: 'it does not accept the credentials' };
  }
  if (has(errors.PermissionViolationError)) {
    const reason = 'it does not permit this user to publish to the subject, or to read the answer';
    return { kind: 'misconfigured', reason };
  }
  if (has(errors.InvalidArgumentError)) {
    return { kind: 'refused', reason: 'it is larger than the server takes (max_payload)' };
  }
  const answered = causes.find((cause) => cause instanceof JetStreamApiError);
  if (answered !== undefined) {
    const secrets = Object.values(credentials);
    const words = foreignText(answered.message, { secrets, charactersMax: hintCharactersMax });
    const reason = `the stream answered ${answered.code}: ${words}`;
    if (answered.code === messageTooLarge) return { kind: 'refused', reason };
    return { kind: 'unavailable', reason, retryAfterMs: null };
  }
  return { kind: 'unavailable', reason: wordsOf(error, causes), retryAfterMs: null };
}

function wordsOf(error: unknown, causes: readonly Error[]): string {
  if (causes.some((cause) => cause instanceof errors.TimeoutError))
    return 'it did not answer in time';
  if (causes.some((cause) => cause instanceof errors.RequestError)) return 'the connection broke';
  return networkFault(error);
}

function causesOf(error: unknown): Error[] {
  const causes: Error[] = [];
  for (let next = error; next instanceof Error && causes.length < 8; next = next.cause) {
    causes.push(next);
  }
  return causes;
}
