/** What the store tells of one commit of deliveries, for those who measure. */

export interface CommitFacts {
  /** From reading the bodies until all of it was on disk. */
  durationSeconds: number;
  deliveries: number;
  /** Of the first notification in it that tells of a created product; null when there is none. */
  publicationDelay: PublicationDelay | null;
}

/** How long after its publication a product was told of. */
export interface PublicationDelay {
  /** The name in the URL path. */
  subscription: string | null;
  seconds: number;
}
