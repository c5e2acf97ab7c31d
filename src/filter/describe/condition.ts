/** Says in plain words what one condition of a filter asks for. */

import { formatDateUs } from '../../domain/dates.ts';
import type {
  AttributeNode,
  ComparisonNode,
  ComparisonOperator,
  FilterTree,
  GroupNode,
  Literal,
  NotNode,
} from '../../domain/filter-tree.ts';
import { printable } from '../../domain/text.ts';
import { attributeReading } from '../attribute-value.ts';
import { describePlace } from './place.ts';

type Condition = Exclude<FilterTree, GroupNode | NotNode>;

/** In one line: `cloudCover is below 20`. */
export function describeCondition(node: Condition): string {
  switch (node.node) {
    case 'comparison':
      return describeComparison(node);
    case 'in':
      return `${labelOf(node.field)} is one of ${node.literals.map(showValue).join(', ')}`;
    case 'text':
      return `${labelOf(node.field)} ${textVerbs[node.function]} ${showWords(node.text)}`;
    case 'attribute':
      return describeAttribute(node);
    case 'intersects':
      return describePlace(node.geometry);
  }
}

const textVerbs = {
  contains: 'contains',
  startswith: 'begins with',
  endswith: 'ends with',
} as const;

/** Fields whose names say little by themselves; of the others the name is the label. */
const labels: Readonly<Record<string, string>> = {
  Name: 'name',
  Id: 'id',
  'Collection/Name': 'collection',
  'ContentDate/Start': 'sensing start',
  'ContentDate/End': 'sensing end',
  PublicationDate: 'publication',
  ModificationDate: 'last modification',
  OriginDate: 'origin date',
  DeletionDate: 'deletion',
  DeletionCause: 'cause of deletion',
};

function labelOf(field: string): string {
  return (Object.hasOwn(labels, field) ? labels[field] : undefined) ?? printable(field);
}

const verbs: Readonly<Record<ComparisonOperator, string>> = {
  eq: 'is',
  ne: 'is not',
  lt: 'is below',
  le: 'is at most',
  gt: 'is above',
  ge: 'is at least',
};

const dateVerbs: Readonly<Record<ComparisonOperator, string>> = {
  eq: 'is',
  ne: 'is not',
  lt: 'is before',
  le: 'is at or before',
  gt: 'is after',
  ge: 'is at or after',
};

function describeComparison({ field, operator, literal }: ComparisonNode): string {
  if (field === 'Online' && literal.type === 'boolean' && /^(?:eq|ne)$/.test(operator)) {
    return literal.value === (operator === 'eq') ? 'product is online' : 'product is not online';
  }
  const words = /Date|^ContentDate\//.test(field) ? dateVerbs : verbs;
  return `${labelOf(field)} ${words[operator]} ${showValue(literal)}`;
}

function describeAttribute({ name, valueKind, operator, literal }: AttributeNode): string {
  const words = attributeReading(valueKind, literal).type === 'date' ? dateVerbs : verbs;
  return `${showWords(name)} ${words[operator]} ${showValue(literal)}`;
}

function showValue(literal: Literal): string {
  switch (literal.type) {
    case 'text':
      return showWords(literal.value);
    case 'date':
      return formatDateUs(literal.us)
        .replace('T', ' ')
        .replace(/(?:\.0{6}|(\.\d*?)0*)Z$/, '$1 UTC');
    default:
      return String(literal.value);
  }
}

/** A text as it is; in quotes when it is empty or begins or ends with a blank. */
function showWords(text: string): string {
  return text === text.trim() && text !== '' ? printable(text) : `'${printable(text)}'`;
}
