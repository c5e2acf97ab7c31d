/** The reader of records of queues. */

import { recordReader } from '../../admin/pull-queue.ts';
import { dayUs } from '../../core/terms/dates.ts';
import type { DescribeReader } from '../../store/pruning/terms.ts';

export const schema = '';

export const reads = {};

export const writes = {};

/** Each record takes a request at a limited rate. */
export const describeReader: DescribeReader = (key) =>
  key === recordReader
    ? { name: 'records of queues', advance: '`earshot start`', lagMaxUs: 2 * dayUs }
    : null;
