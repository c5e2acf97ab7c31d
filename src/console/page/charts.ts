/** Charts as SVG, drawn by the server: they work without JavaScript, and their colours follow the theme. */
import { html } from 'hono/html';
import { shortDateUs } from '../../domain/dates.ts';
import { count, type Html } from './markup.ts';

export interface Bar {
  /** Start and end of the time span. */
  fromUs: number;
  toUs: number;
  value: number;
  /** Page with the content of the bar. */
  href: string;
}

const width = 900;
const left = 44;
const bottom = 22;

/** Draws counts over time. Spans without a bar have the count 0. */
export function barChart(
  bars: readonly Bar[],
  {
    fromUs,
    toUs,
    height = 180,
    label,
  }: { fromUs: number; toUs: number; height?: number; label: string },
): Html {
  const top = niceTop(Math.max(1, ...bars.map(({ value }) => value)));
  const plotHeight = height - bottom - 8;
  const xOf = (us: number) => round(left + ((us - fromUs) / (toUs - fromUs)) * (width - left));
  const yOf = (value: number) => round(8 + plotHeight - (value / top) * plotHeight);
  return html`<svg class="chart" viewBox="0 0 ${width} ${height}" role="img" aria-label="${label}">
${[0, top / 2, top].map(
  (
    value,
  ) => html`<line class="axis" x1="${left}" x2="${width}" y1="${yOf(value)}" y2="${yOf(value)}"/>
<text x="${left - 6}" y="${yOf(value) + 4}" text-anchor="end">${shortCount(value)}</text>`,
)}
${timeTicks(fromUs, toUs).map(
  ({ us, text }) =>
    html`<text x="${xOf(us)}" y="${height - 5}" text-anchor="middle">${text}</text>`,
)}
${bars.map((one) => {
  const [x, end] = [Math.max(left, xOf(one.fromUs)), Math.min(width, xOf(one.toUs))];
  const y = yOf(one.value);
  const title = `${shortDateUs(one.fromUs)} UTC: ${count(one.value)}`;
  return html`<a href="${one.href}" tabindex="-1"><title>${title}</title><rect class="bar ${one.toUs > toUs ? 'current' : ''}" x="${x}" y="${y}" width="${round(Math.max(1, end - x - 1))}" height="${round(8 + plotHeight - y)}"/></a>`;
})}
</svg>`;
}

/** Returns the next value of 1, 2, 4, 6, 8 or 10 times a power of ten: halves are round numbers, too. */
export function niceTop(value: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 2)));
  return power * ([1, 2, 4, 6, 8].find((factor) => factor * power >= value) ?? 10);
}

/** `800`, `1.2k`, `3M`. */
export function shortCount(value: number): string {
  if (value >= 1_000_000) return `${Number((value / 1_000_000).toFixed(1))}M`;
  return value >= 1_000 ? `${Number((value / 1_000).toFixed(1))}k` : String(value);
}

const hourUs = 3_600_000_000;
const dayUs = 24 * hourUs;
/** Distances between labels of a time axis. */
const steps = [5 / 60, 0.25, 1, 3, 6, 12, 24, 48, 120, 240].map((hours) => hours * hourUs);

/** Returns the labels of a time axis, at most about ten, in UTC. */
export function timeTicks(fromUs: number, toUs: number): { us: number; text: string }[] {
  const step = steps.find((one) => (toUs - fromUs) / one <= 10) ?? 20 * dayUs;
  const ticks: { us: number; text: string }[] = [];
  const margin = (toUs - fromUs) / 40;
  for (let us = Math.ceil((fromUs + margin) / step) * step; us <= toUs - margin; us += step) {
    const text = shortDateUs(us);
    ticks.push({ us, text: us % dayUs === 0 ? text.slice(5, 10) : text.slice(11, 16) });
  }
  return ticks;
}

/** Rounds a coordinate: more digits only make the page larger. */
export function round(value: number): number {
  return Math.round(value * 10) / 10;
}
