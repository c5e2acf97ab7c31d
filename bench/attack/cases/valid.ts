/** Valid pushes in every form that HTTP allows: each must be answered with 200 and stored once. */
import { type CaseWorld, oneOf, request } from '../case.ts';

export interface ValidPush {
  readonly name: string;
  readonly pieces: readonly Buffer[];
  readonly ackId: string;
}

/** What varies: how the one notification is written down. */
export function validPush(world: CaseWorld): ValidPush {
  const { random, right } = world;
  const body = world.notification('valid');
  const ackId = String(JSON.parse(body).AckId);
  const login = `Authorization: ${right}`;
  const push = (name: string, ...pieces: Buffer[]) => ({ name, pieces, ackId });
  const chunk = (text: string, more = '') => `${text.length.toString(16)}${more}\r\n${text}\r\n`;
  const coded = (text: string) =>
    Buffer.concat([
      request({ headers: [login, 'Transfer-Encoding: chunked'], hasLength: false }),
      Buffer.from(text),
    ]);
  const middle = random.integer(1, body.length - 1);
  const forms: readonly (() => ValidPush)[] = [
    () => push('plain', request({ headers: [login], body })),
    () => push('chunked', coded(`${chunk(body)}0\r\n\r\n`)),
    () => {
      const chunks = chunk(body.slice(0, middle), ';x=y') + chunk(body.slice(middle));
      return push('chunks with extensions and trailers', coded(`${chunks}000\r\nX: y\r\n\r\n`));
    },
    () => {
      const whole = request({ headers: [login], body });
      const cut = random.integer(1, whole.length - 1);
      return push('in two pieces', whole.subarray(0, cut), whole.subarray(cut));
    },
    () => {
      const headers = [right].map((value) => `aUTHORIZATION:${value}`);
      return push('odd case', request({ headers: [...headers, 'Content-Type: text/plain'], body }));
    },
    () =>
      push(
        'by its whole address',
        request({ target: 'http://x/notifications/fuzz', headers: [login], body }),
      ),
    () =>
      push('with a query', request({ target: '/notifications/fuzz/?a=b', headers: [login], body })),
    () =>
      push(
        'blank line first',
        Buffer.concat([Buffer.from('\r\n'), request({ headers: [login], body })]),
      ),
    () => push('expecting', request({ headers: [login, 'Expect: 100-continue'], body })),
  ];
  return oneOf(random, forms)();
}
