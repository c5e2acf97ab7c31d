/** A status as one screen for people. */
import { printable } from '../../domain/printable.ts';
import { type PartStatus, type Status, statusLevels, statusParts } from '../../domain/status.ts';
import { isWell } from '../../domain/status-json.ts';
import { asCalled } from '../called-as.ts';
import { painter } from '../colour.ts';
import type { Io } from '../io.ts';
import { wrapText } from '../wrap-text.ts';

const columnsMax = 100;

/** How a level shows beside its part. */
const looks = {
  well: { mark: '  ', style: 'green' },
  unused: { mark: '  ', style: 'dim' },
  warning: { mark: '! ', style: 'yellow' },
  critical: { mark: '!!', style: 'red' },
} as const satisfies Record<PartStatus['level'], object>;

const nameWidth = Math.max(...statusParts.map(({ length }) => length));
const indent = ' '.repeat('!! '.length + nameWidth + 2);

/** That all is well, or what is wrong most. */
export function headline(status: Pick<Status, 'parts'>): string {
  if (isWell(status)) return 'All is well.';
  const [worst, ...others] = worstFirst(status);
  const also = others.filter(({ part }) => part !== 'alerts').map(({ part }) => part);
  const rest = also.length === 0 ? '' : ` Also not well: ${also.join(', ')}.`;
  return `Not all is well: ${worst?.text ?? ''}${rest}`;
}

function worstFirst({ parts }: Pick<Status, 'parts'>): PartStatus[] {
  const rank = ({ level }: PartStatus) => statusLevels.indexOf(level);
  return parts
    .filter(({ level }) => level === 'warning' || level === 'critical')
    .toSorted((a, b) => rank(b) - rank(a));
}

/** The headline, and a line for each part; of one that is not well, its next step below it. */
export function printStatus(status: Status, io: Pick<Io, 'stdout' | 'env'>): string {
  const { isTTY, columns = columnsMax } = io.stdout;
  const width = { isTTY, columns: Math.min(columns, columnsMax) };
  const paint = painter(io, io.stdout);
  const { style: headStyle } = looks[worstFirst(status)[0]?.level ?? 'well'];
  const head = wrapText(asCalled(printable(headline(status)), io), '', width);
  const lines = status.parts.flatMap(({ part, level, text, nextStep }) => {
    const { mark, style } = looks[level];
    const words = wrapText(asCalled(printable(text), io), indent, width);
    const [first = '', ...more] = words;
    const label = paint(style, `${mark} ${part.padEnd(nameWidth)}`);
    const next =
      nextStep === null
        ? []
        : wrapText(asCalled(printable(`Next: ${nextStep}`), io), indent, width);
    return [`${label}  ${first.slice(indent.length)}`, ...more, ...next];
  });
  return `${[...head.map((line) => paint(headStyle, line)), '', ...lines].join('\n')}\n`;
}
