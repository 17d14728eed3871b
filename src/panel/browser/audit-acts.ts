/** The acts of the audit, from its records: an act has one before it and one after it, and some acts come many times in a row. */
import type { AnswerTo } from './api.ts';

type Entry = AnswerTo<'GET /v1/admin/audit'>['items'][number];

export interface Act {
  /** The latest record, which says how the act ended if that is known. */
  readonly record: Entry;
  /** When the first of them began. */
  readonly beganAt: string;
  /** How often the same was done. */
  readonly times: number;
}

/** What is the same this close together is read as one. */
const TOGETHER_MS = 3_600_000;

/** One act: the record after it with the time and the parameters of the one before it, as far as both are known. */
interface Single {
  readonly record: Entry;
  beganAt: string;
  requested: Entry['parameters'];
}

function pairedOf(records: readonly Entry[]): readonly Single[] {
  const singles: Single[] = [];
  const ended = new Map<string, Single>();
  for (const record of records) {
    const { eventname, eventtime, outcome, request_id: request, parameters } = record;
    const act = `${request} ${eventname}`;
    const end = outcome === 'intended' ? ended.get(act) : undefined;
    if (end === undefined) {
      const single = { record, beganAt: eventtime, requested: parameters };
      singles.push(single);
      ended.set(act, single);
    } else {
      end.beganAt = eventtime;
      end.requested = parameters;
    }
  }
  return singles;
}

/** How often it happened, of what the registry counts in windows. */
function countOf({ parameters }: Entry): number | undefined {
  const count = parameters?.['count'];
  return typeof count === 'number' ? count : undefined;
}

/** What two acts have in common that are the same. */
function samenessOf({ record: { eventname, useridentity, sourceipaddress, outcome, reason }, requested }: Single): string {
  return JSON.stringify([eventname, useridentity, sourceipaddress, outcome, reason, { ...requested, count: undefined }]);
}

/**
 * Makes one act of all records that belong to it. The newest come first, as they are listed. Acts that follow each other
 * within an hour and are the same are one with their number: an apply that is continued until it is done, or an export page by
 * page. What the registry counts in windows is one in an hour, whatever happened in between.
 */
export function actsOf(records: readonly Entry[]): readonly Act[] {
  const acts: { readonly record: Entry; readonly sameness: string; beganAt: string; times: number }[] = [];
  const counted = new Map<string, (typeof acts)[number]>();
  for (const single of pairedOf(records)) {
    const { record, beganAt } = single;
    const sameness = samenessOf(single);
    const count = countOf(record);
    const before = count === undefined ? acts.at(-1) : counted.get(sameness);
    if (before?.sameness === sameness && Date.parse(before.record.eventtime) - Date.parse(beganAt) < TOGETHER_MS) {
      before.beganAt = beganAt;
      before.times += count ?? 1;
    } else {
      const act = { record, sameness, beganAt, times: count ?? 1 };
      acts.push(act);
      if (count !== undefined) counted.set(sameness, act);
    }
  }
  return acts;
}

/** What the act was done to, of those parameters that say so. */
export function subjectOf({ parameters = {} }: Pick<Entry, 'parameters'>): string | undefined {
  const named = ['bucket', 'name', 'email', 'who', 'id'].map((each) => parameters[each]);
  return named.find((each) => typeof each === 'string');
}

/** Who did it; with a key, the person is only its owner. */
export function actorOf({ useridentity: { email, sessionContext } }: Pick<Entry, 'useridentity'>): string {
  const { keyName } = sessionContext.auth;
  return keyName === undefined ? email : `${email} (${keyName})`;
}
