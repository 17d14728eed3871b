/** What a person reads, and why, in words. Terminals and browsers show them. */
import { PARTS_MAX } from '../../store/readable.rules.ts';

/** `reads`: parts of buckets, or `*` for all of them. */
export function readsText(reads: readonly string[]): string {
  if (reads.length === 0) return 'nothing';
  return reads.map((part) => (part === '*' ? 'every bucket' : part)).join(', ');
}

export const readingReasons = {
  administrator: 'administrators read everything',
  readers: 'TALLY_READERS lets every user read everything',
  grants: 'what is granted',
  too_many: `more than ${PARTS_MAX} separate parts are granted, so that the person reads nothing: grant shorter prefixes`,
} as const;
