/** The catalogue's time: dates and deadlines in the account are its own, whatever our clock says. */

export interface ServiceClock {
  /** Microseconds since 1970, UTC, as the service said last; our own time before it said anything. */
  nowUs: () => number;
  /** A `fetch` that reads the time off each answer. */
  fetch: typeof fetch;
}

/** `Date` has whole seconds and an answer takes its time: a smaller difference is none. */
const toleranceUs = 5_000_000;

/** Follows the `Date` header of a service's answers (RFC 9110, 6.6.1). */
export function createServiceClock(own: {
  nowUs: () => number;
  fetch: typeof fetch;
}): ServiceClock {
  let offsetUs = 0;
  return {
    nowUs: () => own.nowUs() + offsetUs,
    fetch: async (...request) => {
      const response = await own.fetch(...request);
      const dateMs = Date.parse(response.headers.get('date') ?? '');
      if (Number.isNaN(dateMs)) return response;
      const differenceUs = dateMs * 1000 - own.nowUs();
      offsetUs = Math.abs(differenceUs) < toleranceUs ? 0 : differenceUs;
      return response;
    },
  };
}
