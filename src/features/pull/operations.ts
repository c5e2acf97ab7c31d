/** The reader of records of queues. */
import type { DescribeReader } from '../../store/pruning/terms.ts';
import { recordReader } from './terms.ts';

export const schema = '';

export const reads = {};

export const writes = {};

export const describeReader: DescribeReader = (key) =>
  key === recordReader ? { name: 'records of queues', advance: '`earshot start`' } : null;
