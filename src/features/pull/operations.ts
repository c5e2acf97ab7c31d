/** The reader of records of queues. */

import { recordReader } from '../../admin/pull-queue.ts';
import type { DescribeReader } from '../../store/pruning/terms.ts';

export const schema = '';

export const reads = {};

export const writes = {};

export const describeReader: DescribeReader = (key) =>
  key === recordReader ? { name: 'records of queues', advance: '`earshot start`' } : null;
