/**
 * Rules of EventBridge that a person made for a bucket. They are used as they are: Tally makes no second one beside them, and
 * writes to none. So what they let pass, and what they make of it, is judged here.
 */
import { z } from 'zod';
import { canonicalJson } from './canonical.ts';
import { jsonOf } from '../json.ts';
import type { ObservedTarget } from './observed.ts';
import { routedOperations } from './trail.ts';
import { specifiedTransformer, transformer, type InputTransformer, type Wiring, type Wish } from './wiring.ts';

/** Events with all of these values must pass. */
interface Needed {
  readonly [field: string]: readonly string[] | Needed;
}

/** What the rule of a bucket must let pass. */
export function neededEvents({ bucket, region, source }: Wish, { rule }: Wiring): Needed {
  const from = { source: ['aws.s3'], region: [region] };
  if (source === 'routed') {
    const call = { eventSource: ['s3.amazonaws.com'], awsRegion: [region], eventName: [...routedOperations] };
    return { ...from, 'detail-type': [CALLS], detail: { ...call, requestParameters: { bucketName: [bucket] } } };
  }
  const { 'detail-type': types } = z.object({ 'detail-type': z.array(z.string()) }).parse(rule?.pattern ?? { 'detail-type': [] });
  return { ...from, 'detail-type': types, detail: { bucket: { name: [bucket] } } };
}

/** The detail type of all five operations. */
const CALLS = 'AWS API Call via CloudTrail';

interface JudgedPattern {
  /** The values that the pattern does not let pass, each with its field. */
  readonly missing: readonly string[];
  /** The fields of the pattern whose meaning is not known here. */
  readonly unknown: readonly string[];
}

/** Says what of the needed events a pattern keeps out. A field that a pattern does not name lets everything pass. */
export function judgePattern(needed: Needed, pattern: string | undefined): JudgedPattern {
  const fields = fieldsSchema.safeParse(jsonOf(pattern ?? ''));
  return fields.success ? judgeFields(needed, fields.data, []) : { missing: [], unknown: ['the pattern'] };
}

const fieldsSchema = z.record(z.string(), z.unknown());

function judgeFields(needed: Needed, fields: Readonly<Record<string, unknown>>, path: readonly string[]): JudgedPattern {
  const judged = Object.entries(fields).map(([field, wanted]) => judgeField(needed[field], wanted, [...path, field]));
  return { missing: judged.flatMap(({ missing }) => missing), unknown: judged.flatMap(({ unknown }) => unknown) };
}

/** Calls that failed need not pass. */
const FAILURES = new Set(['detail.errorCode', 'detail.errorMessage']);
const SUCCEEDED = canonicalJson([{ exists: false }]);

function judgeField(needed: Needed[string] | undefined, wanted: unknown, path: readonly string[]): JudgedPattern {
  const name = path.join('.');
  if (!Array.isArray(wanted)) return judgeObject(needed, wanted, path);
  if (FAILURES.has(name) && canonicalJson(wanted) === SUCCEEDED) return { missing: [], unknown: [] };
  if (!isList(needed)) return { missing: [], unknown: [name] };
  const kept = needed.filter((value) => !wanted.includes(value));
  // a matcher such as {"prefix": "Put"} may let more pass than the plain values beside it
  if (kept.length > 0 && wanted.some((each) => typeof each !== 'string')) return { missing: [], unknown: [name] };
  return { missing: kept.map((value) => `${name} ${value}`), unknown: [] };
}

function judgeObject(needed: Needed[string] | undefined, wanted: unknown, path: readonly string[]): JudgedPattern {
  const fields = fieldsSchema.safeParse(wanted);
  if (!fields.success || isList(needed)) return { missing: [], unknown: [path.join('.')] };
  return judgeFields(needed ?? {}, fields.data, path);
}

function isList(needed: Needed[string] | undefined): needed is readonly string[] {
  return Array.isArray(needed);
}

/** Whether a pattern is about this bucket by its name. */
export function namesBucket(needed: Needed, pattern: string | undefined): boolean {
  const { missing, unknown } = judgePattern(needed, pattern);
  const isAboutBucket = (text: string): boolean => /^detail\.(?:requestParameters\.bucketName|bucket\.name)\b/.test(text);
  return ![...missing, ...unknown].some(isAboutBucket);
}

/** Whether Tally knows what arrives: the event itself, or what one of its two transformers makes, whatever the variables are called. */
export function isKnownInput({ transformer: found, hasOtherInput }: ObservedTarget): boolean {
  if (hasOtherInput === true) return false;
  if (found === undefined) return true;
  const text = plainTemplate(found);
  return [transformer, specifiedTransformer].some((known) => plainTemplate(known) === text);
}

/** The template with paths in place of its variables, and without the spaces between its parts. */
function plainTemplate({ paths, template }: InputTransformer): string {
  return template.replaceAll(/<([^<>]+)>|("(?:[^"\\]|\\.)*")|\s+/g, (_, variable?: string, text?: string) =>
    variable === undefined ? (text ?? '') : `<${paths[variable] ?? variable}>`,
  );
}
