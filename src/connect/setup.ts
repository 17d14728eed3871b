/**
 * Plans and makes what all buckets share. One request makes a part with all its attributes; in an existing part, only differing
 * attributes and tags are set. After any failure, repeat it.
 */
import { defined } from '../base/defined.ts';
import { FaultError } from '../base/fault.ts';
import { isOwn, newOwner, ownerIn, ownerText, parseArn, partitionOf, prefixOf, tagsOf, type Owner, type Place } from './names.rules.ts';
import {
  deadLetterIn,
  differencesOf,
  BUCKET_QUEUE,
  nameOf,
  missingTags,
  queuesOnly,
  queueArns,
  sharedParts,
  type Difference,
  type FoundPart,
  type SharedPart,
} from './shared.rules.ts';
import { RequestError } from '../base/request-error.ts';
import type { Clock } from '../process/clock.ts';
import type { SharedParts } from './aws/shared-parts.ts';

export interface SetupRequest {
  /** The region whose buckets are to be connected; by default the bucket queue's. */
  readonly region?: string | undefined;
  /** A new installation's name. */
  readonly installation?: string | undefined;
}

export interface PlannedPart extends SharedPart {
  readonly state: 'absent' | 'as-planned' | 'different';
  /** An existing queue's URL. */
  readonly url?: string;
  readonly differences: readonly Difference[];
}

export interface SetupPlan {
  readonly region: string;
  readonly account: string;
  readonly installation: string;
  /** In the order in which they are made. */
  readonly parts: readonly PlannedPart[];
  /** What to export, once both queues are there as planned. */
  readonly settings?: Readonly<Record<string, string>>;
  /** What this call made or corrected. Absent if it changed nothing. */
  readonly made?: readonly string[];
}

export type Setup = ReturnType<typeof createSetup>;

interface Dependencies {
  readonly aws: SharedParts;
  readonly clock: Clock;
  /** The bucket queue's region. */
  readonly region: string;
  /** The server has only queues, without SNS. Default: false. */
  readonly hasQueuesAlone?: boolean;
  /** The settings' queues, of which the first is the bucket queue, whether it exists or not. Without any, it is `tally-bucket-events`. */
  readonly queueUrls: readonly string[];
}

type Queues = ReturnType<typeof queueArns>;

/** A new queue is usable after one second. New queues and changed attributes are visible everywhere within a minute. */
const SEEN_AFTER_MS = 1_000;
const READS_MAX = 60;

/** The account of servers that know none. */
const NO_ACCOUNT = '000000000000';

export function createSetup({ aws, clock, region: homeRegion, queueUrls, hasQueuesAlone = false }: Dependencies) {
  const [bucketUrl, ...otherUrls] = queueUrls;

  /** Reads what exists. Throws `connect.blocked` if another owner's part has the installation's name. */
  async function plan({ region = homeRegion, installation }: SetupRequest, signal?: AbortSignal): Promise<SetupPlan> {
    const account = hasQueuesAlone ? NO_ACCOUNT : await aws.account(signal);
    const home = { partition: partitionOf(homeRegion), region: homeRegion, account };
    const { queues, known } = await presentQueues(home, signal);
    const owner = ownerFor(queues.bucket, known, installation);
    const parts: PlannedPart[] = [];
    const wanted = hasQueuesAlone ? queuesOnly(owner, queues) : sharedParts(owner, { queues, home, region });
    for (const part of wanted) parts.push(await planned(part, owner, signal));
    const settings = settingsOf(home, queues, parts, otherUrls);
    return { region: homeRegion, account, installation: owner.installation, parts, ...defined({ settings }) };
  }

  /** The bucket queue with its current dead-letter queue, whatever their names, and the owner that is known. */
  async function presentQueues(home: Place, signal?: AbortSignal): Promise<{ readonly queues: Queues; readonly known: Owner | undefined }> {
    const queues = queueArns(bucketUrl?.split('/').at(-1) ?? BUCKET_QUEUE, home);
    const found = await aws.read({ kind: 'queue', arn: queues.bucket, attributes: {}, tags: {} }, signal);
    const { attributes, tags } = found === 'absent' ? { attributes: {}, tags: {} } : found;
    // a queue redrives to one beside it, whatever the server calls that place
    const letters = queues.bucket.replace(/[^:]+$/, deadLetterIn(attributes)?.split(':').at(-1) ?? '');
    const known = ownerIn(tags) ?? (await otherOwner(signal));
    return { known, queues: letters.endsWith(':') || letters === queues.bucket ? queues : { ...queues, letters } };
  }

  async function planned(part: SharedPart, owner: Owner, signal?: AbortSignal): Promise<PlannedPart> {
    const found = await aws.read(part, signal);
    if (found === 'absent') return { ...part, state: 'absent', differences: [] };
    refuseForeign(part, found, owner);
    const tags = Object.entries(missingTags(part, found)).map(([name, wanted]) => ({ attribute: `tag ${name}`, wanted }));
    const differences = [...differencesOf(part, found), ...tags];
    return { ...part, state: differences.length === 0 ? 'as-planned' : 'different', differences, ...defined({ url: found.url }) };
  }

  /** The owner in the other queues' tags, as far as they exist: a new queue gets that of the queue that it replaces. */
  async function otherOwner(signal?: AbortSignal): Promise<Owner | undefined> {
    for (const url of otherUrls) {
      const owner = await aws.queueTags(url, signal).then(ownerIn, unlessMissing);
      if (owner !== undefined) return owner;
    }
    return undefined;
  }

  /** Waits until AWS shows the part: only then may a redrive policy name the queue, or a subscription the topic. */
  async function make(part: PlannedPart, owner: Owner, signal?: AbortSignal): Promise<void> {
    // someone may have changed it since the plan
    const now = await planned(part, owner, signal);
    if (now.state === 'absent') await aws.create(part, signal);
    else if (now.state === 'different') await aws.change(now, changesOf(now), signal);
    for (let count = 0; count < READS_MAX; count += 1) {
      await clock.sleep(SEEN_AFTER_MS, signal);
      if ((await planned(part, owner, signal)).state === 'as-planned') return;
    }
    throw new FaultError('connect.unavailable', `${nameOf(part)}: AWS does not show it as planned after ${READS_MAX} s`);
  }

  return {
    plan,
    /** Makes absent parts, sets what differs, and reads everything again. */
    async apply(request: SetupRequest, signal?: AbortSignal): Promise<SetupPlan> {
      const before = await plan(request, signal);
      const unplanned = before.parts.filter(({ state }) => state !== 'as-planned');
      const owner = ownerIn(before.parts[0]?.tags ?? {});
      if (unplanned.length === 0 || owner === undefined) return before;
      for (const part of unplanned) await make(part, owner, signal);
      return { ...(await plan(request, signal)), made: unplanned.map(nameOf) };
    },
  };
}

function unlessMissing(error: unknown): undefined {
  if (!(error instanceof RequestError) || error.code !== 'connect.queue-missing') throw error;
}

function ownerFor(bucketArn: string, known: Owner | undefined, named: string | undefined): Owner {
  if (known === undefined) return newOwner(bucketArn, named);
  if (named === undefined || named === known.installation) return known;
  throw new RequestError(
    'connect.blocked',
    `the bucket queue belongs to the installation ${known.installation}, but TALLY_INSTALLATION is ${named}: unset it`,
  );
}

function changesOf({ differences, tags }: PlannedPart): Parameters<SharedParts['change']>[1] {
  const isTag = ({ attribute }: Difference): boolean => attribute.startsWith('tag ');
  return {
    attributes: Object.fromEntries(differences.filter((each) => !isTag(each)).map(({ attribute, wanted }) => [attribute, wanted])),
    tags: differences.some(isTag) ? tags : {},
  };
}

/** A person may have made a queue with the wanted name, but only a registry makes parts with the installation's name. */
function refuseForeign({ kind, arn }: SharedPart, { tags }: FoundPart, owner: Owner): void {
  if (kind === 'subscription' || isOwn(tags, owner)) return;
  const isNamedByUs = parseArn(arn)?.resource.startsWith(prefixOf(owner.installation)) === true;
  if (!isNamedByUs && ownerIn(tags) === undefined) return;
  const wanted = Object.entries(tagsOf(owner)).map(([name, value]) => `${name}=${value}`);
  throw new RequestError(
    'connect.blocked',
    `the ${kind} ${arn} ${ownerText(tags)}: Tally leaves it unchanged. Choose a different TALLY_INSTALLATION, or, if the ${kind} is yours, give it the tags ${wanted.join(' and ')}`,
  );
}

function settingsOf(home: Place, { letters, bucket }: Queues, parts: readonly PlannedPart[], others: readonly string[]) {
  const urlOf = (arn: string): string | undefined => parts.find((part) => part.arn === arn && part.state === 'as-planned')?.url;
  const [bucketUrl, lettersUrl] = [bucket, letters].map(urlOf);
  if (bucketUrl === undefined || lettersUrl === undefined) return undefined;
  const queueUrls = [bucketUrl, ...others].join(',');
  return { AWS_REGION: home.region, TALLY_QUEUE_URL: queueUrls, TALLY_DEAD_LETTER_QUEUE_URL: lettersUrl };
}
