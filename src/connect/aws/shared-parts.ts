/**
 * Makes what all buckets share: queues, topics, and the subscriptions of the bucket queue to them. Every function throws
 * `connect.denied` (a RequestError with the missing action) and the faults `connect.unavailable` and `connect.credentials`.
 */
import { GetCallerIdentityCommand, type STSClient } from '@aws-sdk/client-sts';
import { FaultError } from '../../base/fault.ts';
import type { Tags } from '../names.rules.ts';
import type { Attributes } from '../plan.rules.ts';
import { attributeTexts, confirmed, type FoundPart, type SharedPart } from '../shared.rules.ts';
import { ask, orAbsent } from './ask.ts';
import type { WholeProvisioner } from './provisioner.ts';

interface Dependencies {
  readonly parts: WholeProvisioner;
  readonly identity: () => Promise<STSClient>;
}

/** Attributes and tags to set. All others stay. */
interface Settings {
  readonly attributes: Attributes;
  readonly tags: Tags;
}

/** What can be done with one kind of part. */
interface Kind {
  /** The part with all its attributes. A subscription that is not confirmed does not exist. */
  readonly read: (part: SharedPart, signal?: AbortSignal) => Promise<FoundPart | 'absent'>;
  readonly create: (part: SharedPart, signal?: AbortSignal) => Promise<void>;
  readonly change: (part: SharedPart, to: Settings, signal?: AbortSignal) => Promise<void>;
}

export type SharedParts = ReturnType<typeof createSharedParts>;

export function createSharedParts({ parts, identity }: Dependencies) {
  const queue: Kind = {
    async read({ arn }, signal) {
      const found = await parts.queueOf(arn, signal);
      return found === 'absent' ? found : { ...found, tags: await parts.queueTags(found.url, signal) };
    },
    create: (part, signal) => parts.createQueue(part.arn, attributeTexts(part), part.tags, signal),
    async change({ arn }, { attributes, tags }, signal) {
      if (Object.keys(tags).length > 0) await parts.tagQueue(arn, tags, signal);
      if (Object.keys(attributes).length > 0) await parts.setQueue(arn, attributes, signal);
    },
  };

  const topic: Kind = {
    async read({ arn }, signal) {
      const found = await parts.topicOf(arn, '', signal);
      const tags = found === 'absent' ? found : await orAbsent(parts.topicTags(arn, signal));
      return found === 'absent' || tags === 'absent' ? 'absent' : { attributes: found.attributes, tags };
    },
    create: (part, signal) => parts.createTopic(part.arn, attributeTexts(part), part.tags, signal),
    async change({ arn }, { attributes, tags }, signal) {
      if (Object.keys(tags).length > 0) await parts.tagTopic(arn, tags, signal);
      await parts.setTopic(arn, attributes, signal);
    },
  };

  const subscription: Kind = {
    async read({ arn, endpoint = '' }, signal) {
      const found = confirmed(await parts.topicOf(arn, endpoint, signal));
      return found === undefined ? 'absent' : { attributes: found.attributes, tags: {} };
    },
    create: (part, signal) => parts.subscribe(part.arn, part.endpoint ?? '', attributeTexts(part), signal),
    async change({ arn, endpoint = '' }, { attributes }, signal) {
      const found = confirmed(await parts.topicOf(arn, endpoint, signal));
      await parts.setSubscription(found?.arn ?? arn, attributes, signal);
    },
  };

  const kinds: Readonly<Record<SharedPart['kind'], Kind>> = { queue, topic, subscription };
  return {
    queueTags: (queueUrl: string, signal?: AbortSignal) => parts.queueTags(queueUrl, signal),
    /** The account of the credentials. */
    async account(signal?: AbortSignal): Promise<string> {
      const { Account } = await ask(await identity(), new GetCallerIdentityCommand({}), '', signal);
      if (Account === undefined) throw new FaultError('connect.unavailable', 'GetCallerIdentity: the answer names no account');
      return Account;
    },
    read: (part: SharedPart, signal?: AbortSignal) => kinds[part.kind].read(part, signal),
    create: (part: SharedPart, signal?: AbortSignal) => kinds[part.kind].create(part, signal),
    change: (part: SharedPart, to: Settings, signal?: AbortSignal) => kinds[part.kind].change(part, to, signal),
  };
}
