/** Parses Prometheus' text format (0.0.4), as strictly as a scraping server. */

export interface MetricSample {
  name: string;
  labels: Readonly<Record<string, string>>;
  value: number;
}

const sampleLine = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/;
const label = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"(?:,|$)/y;

/** Returns the announced types, also of names without samples, the samples, and a function that finds one. */
export function readScrape(text: string) {
  const types = new Map<string, string>();
  const samples: MetricSample[] = [];
  for (const line of text.split('\n')) {
    const [, typed = '', type = ''] = /^# TYPE (\S+) (\S+)$/.exec(line) ?? [];
    if (typed !== '') types.set(typed, type);
    if (line === '' || line.startsWith('#')) continue;
    const [, name = '', labels = '', value = ''] = sampleLine.exec(line) ?? [];
    if (name === '') throw new Error(`Not a line of a scrape: ${line}`);
    samples.push({ name, labels: labelsOf(labels), value: Number(value.replace(/^Nan$/, 'NaN')) });
  }
  /** Returns the only sample with these labels; undefined when there is none. */
  const value = (name: string, labels: Readonly<Record<string, string>> = {}) => {
    const found = samples.filter(
      (one) => one.name === name && Object.entries(labels).every(([l, v]) => one.labels[l] === v),
    );
    if (found.length > 1) throw new Error(`There are ${found.length} samples of ${name}.`);
    return found[0]?.value;
  };
  return { types, samples, value };
}

function labelsOf(text: string): Record<string, string> {
  const labels: Record<string, string> = {};
  label.lastIndex = 0;
  while (label.lastIndex < text.length) {
    const [, name = '', value = ''] = label.exec(text) ?? [];
    if (name === '') throw new Error(`No labels: ${text}`);
    labels[name] = value.replaceAll(/\\(.)/g, (_, c: string) => (c === 'n' ? '\n' : c));
  }
  return labels;
}
