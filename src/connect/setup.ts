/**
 * Plans and makes what all buckets share. A part is made with all its attributes by one request. Of one that exists and was made
 * otherwise, the attributes and tags that differ are set. It may be repeated after any failure.
 */
import { defined } from '../base/defined.ts';
import { FaultError } from '../base/fault.ts';
import { isOwn, newOwner, ownerIn, ownerText, parseArn, partitionOf, prefixOf, tagsOf, type Owner, type Place } from './names.rules.ts';
import {
  deadLetterIn,
  differencesOf,
  lettersName,
  nameOf,
  missingTags,
  QUEUE_PREFIX,
  queuesOnly,
  queueArnOf,
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
  /** The first word of the queues' names. Absent: the bucket queue is that of the settings, if they name one. */
  readonly prefix?: string | undefined;
  /** The region whose buckets are to be connected. Absent: that of the bucket queue. */
  readonly region?: string | undefined;
  /** The name of a new installation. */
  readonly installation?: string | undefined;
}

export interface PlannedPart extends SharedPart {
  readonly state: 'absent' | 'as-planned' | 'different';
  /** Of a queue that exists. */
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
  /** What this call has made, or healed. Absent: it changed nothing. */
  readonly made?: readonly string[];
}

export type Setup = ReturnType<typeof createSetup>;

interface Dependencies {
  readonly aws: SharedParts;
  readonly clock: Clock;
  /** Where a new bucket queue is. */
  readonly region: string;
  /** The server has queues, and nothing else that all buckets could share. Default: false. */
  readonly hasQueuesAlone?: boolean;
  /** The bucket queue of the settings: another queue gets its installation. */
  readonly present?: { readonly url: string; readonly region: string } | undefined;
}

type Queues = ReturnType<typeof queueArns>;

/** AWS says that a new queue can be used after one second. It, and a changed attribute, is seen everywhere within a minute. */
const SEEN_AFTER_MS = 1_000;
const READS_MAX = 60;

/** Of servers that know no accounts. */
const NO_ACCOUNT = '000000000000';

export function createSetup({ aws, clock, region: newRegion, present, hasQueuesAlone = false }: Dependencies) {
  /** Reads what exists. Throws `connect.blocked` where a part with the installation's name is another one's. */
  async function plan(request: SetupRequest, signal?: AbortSignal): Promise<SetupPlan> {
    const homeRegion = request.prefix === undefined && present !== undefined ? present.region : newRegion;
    const { region = homeRegion } = request;
    const home = {
      partition: partitionOf(homeRegion),
      region: homeRegion,
      account: hasQueuesAlone ? NO_ACCOUNT : await aws.account(signal),
    };
    const queues = await queuesOf(request, home, signal);
    const owner = await ownerOf(request, queues.bucket, signal);
    const parts: PlannedPart[] = [];
    const wanted = hasQueuesAlone ? queuesOnly(owner, queues) : sharedParts(owner, { queues, home, region });
    for (const part of wanted) parts.push(await planned(part, owner, signal));
    return { region: homeRegion, account: home.account, installation: owner.installation, parts, ...settingsOf(home, queues, parts) };
  }

  async function planned(part: SharedPart, owner: Owner, signal?: AbortSignal): Promise<PlannedPart> {
    const found = await aws.read(part, signal);
    if (found === 'absent') return { ...part, state: 'absent', differences: [] };
    refuseForeign(part, found, owner);
    const tags = Object.entries(missingTags(part, found)).map(([name, wanted]) => ({ attribute: `tag ${name}`, wanted }));
    const differences = [...differencesOf(part, found), ...tags];
    return { ...part, state: differences.length === 0 ? 'as-planned' : 'different', differences, ...defined({ url: found.url }) };
  }

  /** Those of the prefix, or the queue of the settings with the dead-letter queue that it has, whatever their names are. */
  async function queuesOf({ prefix }: SetupRequest, home: Place, signal?: AbortSignal): Promise<Queues> {
    if (prefix !== undefined || present === undefined) return queueArns(prefix ?? QUEUE_PREFIX, home);
    const [name = ''] = present.url.split('/').slice(-1);
    const { bucket, letters } = { bucket: queueArnOf(name, home), letters: queueArnOf(lettersName(name), home) };
    const target = deadLetterIn((await queueAt(bucket, signal))?.attributes ?? {});
    return { bucket, letters: target === undefined || target === bucket ? letters : target };
  }

  async function queueAt(arn: string, signal?: AbortSignal): Promise<FoundPart | undefined> {
    const found = await aws.read({ kind: 'queue', arn, attributes: {}, tags: {} }, signal);
    return found === 'absent' ? undefined : found;
  }

  /** The queue knows its installation by its tags. A new queue gets that of the queue that it replaces. */
  async function ownerOf({ prefix, installation }: SetupRequest, bucketArn: string, signal?: AbortSignal): Promise<Owner> {
    const tags = (await queueAt(bucketArn, signal))?.tags ?? {};
    const replaced = prefix === undefined || present === undefined ? {} : await aws.queueTags(present.url, signal);
    const known = ownerIn(tags) ?? ownerIn(replaced);
    if (known === undefined) return newOwner(bucketArn, installation);
    if (installation === undefined || installation === known.installation) return known;
    throw new RequestError(
      'connect.blocked',
      `the bucket queue belongs to the installation ${known.installation}, but TALLY_INSTALLATION is ${installation}: unset it`,
    );
  }

  /** A redrive policy may name a queue, and a subscription a topic, only once AWS shows it. */
  async function make(part: PlannedPart, owner: Owner, signal?: AbortSignal): Promise<void> {
    // others may have written since the plan
    const now = await planned(part, owner, signal);
    if (now.state === 'absent') await aws.create(part, signal);
    else if (now.state === 'different') await aws.change(part, changesOf(now), signal);
    for (let count = 0; count < READS_MAX; count += 1) {
      await clock.sleep(SEEN_AFTER_MS, signal);
      if ((await planned(part, owner, signal)).state === 'as-planned') return;
    }
    throw new FaultError('connect.unavailable', `${nameOf(part)}: AWS does not show it as planned after ${READS_MAX} s`);
  }

  return {
    plan,
    /** Makes what is absent, sets what differs, and reads everything again. */
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

function changesOf({ differences, tags }: PlannedPart): Parameters<SharedParts['change']>[1] {
  const isTag = ({ attribute }: Difference): boolean => attribute.startsWith('tag ');
  return {
    attributes: Object.fromEntries(differences.filter((each) => !isTag(each)).map(({ attribute, wanted }) => [attribute, wanted])),
    tags: differences.some(isTag) ? tags : {},
  };
}

/** A queue of the wanted name may have been made by hand. What is named by the installation was made by a registry. */
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

function settingsOf(home: Place, { letters, bucket }: Queues, parts: readonly PlannedPart[]): Pick<SetupPlan, 'settings'> {
  const urlOf = (arn: string): string | undefined => parts.find((part) => part.arn === arn && part.state === 'as-planned')?.url;
  const [bucketUrl, lettersUrl] = [bucket, letters].map(urlOf);
  if (bucketUrl === undefined || lettersUrl === undefined) return {};
  return { settings: { AWS_REGION: home.region, TALLY_QUEUE_URL: bucketUrl, TALLY_DEAD_LETTER_QUEUE_URL: lettersUrl } };
}
