/** Colours of footprints: classes of collection, age, cloud cover or delay. */

/** A product of `/api/footprints`, without its geometry. */
export interface Footprint {
  position: number;
  productId: string;
  productName: string | null;
  collection: string | null;
  sensingStart: string | null;
  publicationDate: string | null;
  receivedAt: string;
  cloudCoverPercent: number | null;
}

export type ColourName = 'collection' | 'age' | 'cloud' | 'delay';

export interface Colouring {
  title: string;
  /** Each with its class in the style sheet, in the order of the legend. */
  classes: readonly { style: string; label: string }[];
  classOf(footprint: Footprint, nowMs: number): number;
}

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;

/** Classes of a value: each has an upper bound, the last but one has none, the last is for unknown values. */
function steps(
  title: string,
  bounds: readonly (readonly [below: number, label: string])[],
  above: string,
  read: (footprint: Footprint, nowMs: number) => number | null,
): Colouring {
  const labels = [...bounds.map(([, label]) => label), above];
  const ramp = labels.map((label, i) => ({ style: `step-${i}`, label }));
  return {
    title,
    classes: [...ramp, { style: 'unknown', label: 'not known' }],
    classOf: (footprint, nowMs) => {
      const value = read(footprint, nowMs);
      if (value === null || Number.isNaN(value)) return labels.length;
      const found = bounds.findIndex(([below]) => value < below);
      return found < 0 ? bounds.length : found;
    },
  };
}

const timeOf = (text: string | null) => (text === null ? Number.NaN : Date.parse(text));

/** Groups of collections have a colour of their own; all others share the last one. */
const byGroup = (groups: readonly string[]): Colouring => ({
  title: 'Collection',
  classes: [...groups, 'other'].map((label, i) => ({ style: `kind-${i}`, label })),
  classOf: ({ collection }) => {
    const found = groups.findIndex((name) => collection?.startsWith(name));
    return found < 0 ? groups.length : found;
  },
});

const fixed: Readonly<Record<Exclude<ColourName, 'collection'>, Colouring>> = {
  age: steps(
    'Time since sensing',
    [
      [3 * hourMs, 'less than 3 h'],
      [6 * hourMs, '3 to 6 h'],
      [12 * hourMs, '6 to 12 h'],
      [24 * hourMs, '12 to 24 h'],
      [72 * hourMs, '1 to 3 days'],
    ],
    'more than 3 days',
    ({ sensingStart }, nowMs) => nowMs - timeOf(sensingStart),
  ),
  cloud: steps(
    'Cloud cover',
    [
      [10, 'less than 10 %'],
      [20, '10 to 20 %'],
      [40, '20 to 40 %'],
      [60, '40 to 60 %'],
      [80, '60 to 80 %'],
    ],
    '80 % and more',
    ({ cloudCoverPercent }) => cloudCoverPercent,
  ),
  delay: steps(
    'Publication to receipt',
    [
      [minuteMs, 'less than 1 min'],
      [2 * minuteMs, '1 to 2 min'],
      [5 * minuteMs, '2 to 5 min'],
      [15 * minuteMs, '5 to 15 min'],
      [hourMs, '15 to 60 min'],
    ],
    'more than 1 h',
    ({ publicationDate, receivedAt }) => timeOf(receivedAt) - timeOf(publicationDate),
  ),
};

/** Returns the colours of a map. */
export function colouringOf(name: ColourName, groups: readonly string[]): Colouring {
  return name === 'collection' ? byGroup(groups) : fixed[name];
}
