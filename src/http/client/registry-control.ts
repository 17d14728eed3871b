/** The control plane's verbs by a running registry's HTTP API: what the command line uses with --registry. */
import { z } from 'zod';
import { bucketRecordSchema, unconnectedSchema } from '../../domain/bucket.ts';
import { objectDocumentSchema } from '../../domain/documents/document.ts';
import { faults, type FaultCode } from '../../domain/fault.ts';
import { gapSchema } from '../../domain/gaps/gap.ts';
import type { Control, DeadLetter, Explanation, Page } from '../../pipeline/control/control.ts';
import { jobViewSchema } from '../../domain/reindex/job-view.ts';
import { createAskRegistry, type AskRegistry } from './registry-client.ts';

/** Creates the control plane of the registry at `url`. Its verbs reject as those of the registry do, and as {@link AskRegistry} says. */
export function createRegistryControl(url: string): Control {
  const ask = createAskRegistry(url);
  return {
    search: ({ ...query }, signal) => ask({ method: 'GET', path: ['objects'], query, answer: pageOf(objectDocumentSchema) }, signal),
    explain: (bucket, key, signal) =>
      ask({ method: 'GET', path: ['buckets', bucket, 'explain'], query: { key }, answer: explanationSchema }, signal),
    buckets: bucketsOf(ask),
    gaps: ({ ...query }, signal) => ask({ method: 'GET', path: ['gaps'], query, answer: pageOf(gapSchema) }, signal),
    jobs: jobsOf(ask),
    deadLetters: deadLettersOf(ask),
  };
}

function bucketsOf(ask: AskRegistry): Control['buckets'] {
  return {
    async list(signal) {
      const { items, unconnected } = await ask({ method: 'GET', path: ['buckets'], answer: bucketsSchema }, signal);
      return { connected: items, unconnected };
    },
    get: (bucket, signal) => ask({ method: 'GET', path: ['buckets', bucket], answer: bucketRecordSchema }, signal),
    add: (body, _by, signal) => ask({ method: 'POST', path: ['buckets'], body, answer: bucketRecordSchema }, signal),
    async remove(bucket, signal) {
      await ask({ method: 'DELETE', path: ['buckets', bucket], answer: z.undefined() }, signal);
    },
  };
}

function jobsOf(ask: AskRegistry): Control['jobs'] {
  const answer = jobViewSchema;
  return {
    request: ({ bucket, ...body }, _by, signal) => ask({ method: 'POST', path: ['buckets', bucket, 'reindex'], body, answer }, signal),
    get: (id, signal) => ask({ method: 'GET', path: ['jobs', id], answer }, signal),
    list: ({ ...query }, signal) => ask({ method: 'GET', path: ['jobs'], query, answer: pageOf(answer) }, signal),
    cancel: (id, signal) => ask({ method: 'POST', path: ['jobs', id, 'cancel'], answer }, signal),
    pause: (id, signal) => ask({ method: 'POST', path: ['jobs', id, 'pause'], answer }, signal),
    resume: (id, body, signal) => ask({ method: 'POST', path: ['jobs', id, 'resume'], body, answer }, signal),
  };
}

function deadLettersOf(ask: AskRegistry): Control['deadLetters'] {
  const idsOf = (ids: readonly string[] | 'all'): unknown => (ids === 'all' ? { all: true } : { ids });
  return {
    async list({ ...query }, signal) {
      const { items } = await ask(
        { method: 'GET', path: ['dead-letters'], query, answer: z.object({ items: z.array(deadLetterSchema) }) },
        signal,
      );
      return items;
    },
    show: (id, signal) => ask({ method: 'GET', path: ['dead-letters', id], answer: deadLetterSchema.extend({ body: z.string() }) }, signal),
    async replay(ids, signal) {
      const answer = z.object({ replayed: z.number() });
      return (await ask({ method: 'POST', path: ['dead-letters', 'replay'], body: idsOf(ids), answer }, signal)).replayed;
    },
    async discard(ids, signal) {
      const answer = z.object({ discarded: z.number() });
      return (await ask({ method: 'POST', path: ['dead-letters', 'discard'], body: idsOf(ids), answer }, signal)).discarded;
    },
  };
}

// ── what the registry answers ──

function pageOf<Item>(item: z.ZodType<Item>): z.ZodType<Page<Item>> {
  return z.object({ items: z.array(item), next: z.string().exactOptional() });
}

const bucketsSchema = z.object({ items: z.array(bucketRecordSchema), unconnected: z.array(unconnectedSchema) });

const presentSchema = z.object({
  present: z.literal(true),
  etag: z.string().exactOptional(),
  sizeBytes: z.number().exactOptional(),
  versionId: z.string().exactOptional(),
  lastModifiedMs: z.number().exactOptional(),
  lastModifiedExact: z.boolean().exactOptional(),
  storageClass: z.string().exactOptional(),
  expiresAtMs: z.number().exactOptional(),
});

const faultSchema = z.object({
  code: z.custom<FaultCode>((code) => typeof code === 'string' && Object.hasOwn(faults, code)),
  reason: z.string(),
});

const explanationSchema = z.object({
  bucket: z.string(),
  key: z.string(),
  index: objectDocumentSchema.exactOptional(),
  storage: z.union([
    z.object({ state: z.union([presentSchema, z.object({ present: z.literal(false) })]), observedAt: z.string() }),
    z.object({ fault: faultSchema, advice: z.string() }),
  ]),
  clocks: z.object({ document: z.number().exactOptional(), floor: z.number(), observation: z.number().exactOptional() }),
  agrees: z.union([z.boolean(), z.literal('unknown')]),
  sentence: z.string(),
}) satisfies z.ZodType<Explanation>;

const deadLetterSchema = z.object({
  id: z.string(),
  sentAt: z.string(),
  fault: z.string().exactOptional(),
  reason: z.string().exactOptional(),
  context: z.record(z.string(), z.unknown()).exactOptional(),
  sizeBytes: z.number(),
}) satisfies z.ZodType<DeadLetter>;
