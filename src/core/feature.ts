/**
 * The contract of features: a feature is one folder, and this object in its `index.ts` is all that the rest of the
 * program knows of it. Nothing happens at import: heavy parts are functions that import them.
 */

import type { Command } from 'commander';
import type { JobSlot, StartService } from '../receiver/slots.ts';
import type { AfterPruning } from '../store/pruning/terms.ts';
import type { SharedStore, StoreReader } from '../store/store.ts';
import type { TablesSlot } from '../store/tables.ts';
import type { ListenerSlot } from './api/listener-slot.ts';
import type { OpenPart } from './cli/command.ts';
import type { Io } from './cli/io.ts';
import type { SettingsSlot } from './config/load.ts';
import type { DoctorSlot } from './doctor/steps.ts';
import type { StatusPart } from './status/status.ts';
import type { Alert } from './terms/evaluation.ts';

/** Groups of the command overview, in its order. */
export const commandGroups = ['run', 'look', 'subscribe', 'repair', 'data', 'try'] as const;

/** A command. `load` is called when the command is used or described. */
export interface CommandSlot {
  name: string;
  /** Place: a group of the overview, or the name of the command that contains it, such as `query`. */
  under: (typeof commandGroups)[number] | { command: string };
  /** Text for the most used commands in the overview; by default, the command is only named there. */
  overview?: string;
  load: () => Promise<(io: Io) => Command>;
}

/** Opens what a feature adds to the store of the library, in addition to its tables. */
export type OpenLibrary = (dataDir: string) => { ports: object; close(): Promise<void> };

/** Everything that a feature may contribute. Every slot is optional. */
export interface Feature {
  name: string;
  /** Features that this one imports: their `index.ts`, and the files that they name in `offers`. */
  needs?: readonly string[];
  /** Files of the folder that other features may import. An index that re-exported them would load them at each start. */
  offers?: readonly string[];
  commands?: readonly CommandSlot[];
  /** Parts that commands may request by name. */
  parts?: Readonly<Record<string, OpenPart>>;
  /** Variables and sections of the configuration, loaded with every command. */
  settings?: () => Promise<SettingsSlot>;
  /** Tables in the store. */
  tables?: readonly TablesSlot[];
  /** Opens a log that several receivers share. */
  sharedStore?: () => Promise<SharedStore>;
  /** Runs before `earshot start` reads its settings and files. */
  beforeStart?: (io: Io) => Promise<void>;
  /** Files in the data directory that all receivers of a shared log have. `keeps`: one that is deleted is restored. */
  sharedFiles?: readonly { name: string; keeps: boolean }[];
  /** A service of the receiver, from before it listens until it stops. */
  service?: StartService;
  /** Background jobs of `earshot start`, in their order. */
  jobs?: readonly JobSlot[];
  /** Active alerts, for evaluations. */
  activeAlerts?: (store: StoreReader) => Promise<readonly Alert[]>;
  /** Parts of the status, with their alerts and metrics. */
  status?: () => Promise<{ parts: readonly StatusPart[] }>;
  /** Members of the store of the library. */
  library?: () => Promise<OpenLibrary>;
  /** Work after a pruning by command. */
  afterPruning?: () => Promise<AfterPruning>;
  /** Steps of `earshot doctor`. */
  doctor?: () => Promise<DoctorSlot>;
  /** Routes and pages of the private listener, loaded when it is opened. */
  listener?: () => Promise<ListenerSlot>;
}

/** Declares a feature. */
export const defineFeature = <const Own extends Feature>(feature: Own): Own => feature;
