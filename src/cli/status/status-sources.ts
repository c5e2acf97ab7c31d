/** What a status is made from: the store, the machine, and what whoever serves or asks knows besides. */
import type { Logger } from '../../domain/ports.ts';
import type { CertificateStatus, ReceiverStatus } from '../../domain/status.ts';
import type { SummaryRuleKind } from '../../domain/summary-rule.ts';
import type { StoreReader } from '../../store/store.ts';
import type { HandingOver, Probes } from '../../watch/watch-world.ts';

/** What the settings say, and what works beside intake. */
export interface Beside {
  version: string;
  /** How it stands with the sinks. */
  handingOver: () => HandingOver;
  /** Of the rules of all subscriptions: `each` where any asks for it. Rejects when they cannot be read. */
  summaryMode: () => Promise<SummaryRuleKind>;
  /** How often a backup is made by itself; null where none is. */
  backupEveryHours: number | null;
  /** Why hours are not compared automatically; null when they are. */
  comparisonOff: string | null;
}

export interface StatusSources {
  store: Pick<
    StoreReader,
    | 'find'
    | 'heldCount'
    | 'administration'
    | 'completeness'
    | 'summaries'
    | 'alerts'
    | 'sinks'
    | 'backups'
    | 'pruning'
  >;
  dataDir: string;
  /** Whether a proxy speaks HTTPS. */
  behindProxy: boolean;
  /** Whether the product index is kept. */
  index: boolean;
  probes: Pick<Probes, 'disk'> & { certificate(): Promise<CertificateStatus | null> };
  /** Resolves with null when no receiver runs; rejects when that cannot be found out. */
  receiver: () => Promise<ReceiverStatus | null>;
  beside: () => Beside;
  nowUs: () => number;
  log: Pick<Logger, 'warn'>;
}
