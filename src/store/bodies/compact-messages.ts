/** What the thread that compacts is asked. */

export type CompactRequest =
  | { op: 'step'; id: number; besideIntake: boolean }
  | { op: 'give-back'; id: number; freeShare: number }
  | { op: 'checkpoint'; id: number }
  | { op: 'close'; id: number };
