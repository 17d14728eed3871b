/** One object: what the index holds, what S3 reports now, and why a search finds it or does not. */
import type { Explanation } from '../../api/objects.ts';
import { call, type AnswerTo } from './api.ts';
import { copiedCommand, copiedKey, copiedUri } from './copied.ts';
import { useLoaded } from './load.ts';
import { sameChoices } from './search-place.ts';
import { Advice, CopyButton, Details, Link, Shown, Size, Table, Text, Time } from './parts.tsx';

interface ObjectName {
  readonly bucket: string;
  readonly name: string;
}

export function ObjectPage({ bucket, name }: ObjectName) {
  return (
    <>
      <h1 class="key">
        <Text>{name}</Text>
      </h1>
      <ObjectView bucket={bucket} name={name} />
    </>
  );
}

/** What is known of an object, without its heading. */
export function ObjectView({ bucket, name }: ObjectName) {
  const read = (signal: AbortSignal): Promise<AnswerTo<'GET /v1/buckets/{bucket}/explain'>> =>
    call('GET /v1/buckets/{bucket}/explain', { params: { bucket }, query: { key: name } }, signal);
  const loaded = useLoaded(`object ${bucket} ${name}`, read);
  return (
    <>
      <p>
        in{' '}
        <Link page="bucket" choices={{ bucket }}>
          <Text>{bucket}</Text>
        </Link>
      </p>
      <p class="actions">
        <CopyButton copied={copiedKey(name)}>Copy key</CopyButton>
        <CopyButton copied={copiedUri(bucket, name)}>Copy URI</CopyButton>
        <CopyButton copied={copiedCommand(bucket, name)}>Copy aws command</CopyButton>
      </p>
      <Shown loaded={loaded} busy="Asking the index and S3…">
        {(value) => (
          <>
            <p class="sentence">
              <Text>{value.sentence}</Text>
            </p>
            <Comparison of={value} />
            <MoreFacts of={value} />
            <SameBytes of={value} />
            <button type="button" class="outline small" onClick={loaded.reload}>
              Ask again
            </button>
          </>
        )}
      </Shown>
    </>
  );
}

type Present = Extract<Extract<Explanation['storage'], { state: unknown }>['state'], { present: true }>;

const named = (texts: Readonly<Record<string, string>> | undefined): string | undefined =>
  texts &&
  Object.entries(texts)
    .map(([name, value]) => `${name}=${value}`)
    .join(', ');

/** An object without user metadata has an empty text of it. */
function textCell(text = '') {
  return text === '' ? <span class="quiet">–</span> : <Text>{text}</Text>;
}

function presentOf({ storage }: Explanation): Partial<Present> {
  return 'state' in storage && storage.state.present ? storage.state : {};
}

function presence({ index, storage }: Explanation): readonly [string, string] {
  const inIndex = index === undefined ? 'nothing' : index.deleted ? 'a tombstone' : 'an object';
  const inStorage = 'fault' in storage ? 'not known' : storage.state.present ? 'an object' : 'nothing';
  return [inIndex, inStorage];
}

function Comparison({ of }: { readonly of: Explanation }) {
  const index: Partial<NonNullable<Explanation['index']>> = of.index ?? {};
  const s3 = presentOf(of);
  const [inIndex, inStorage] = presence(of);
  const rows = [
    ['Holds', inIndex, inStorage],
    ['Size', <Size bytes={index.size} />, <Size bytes={s3.size_bytes} />],
    ['Etag', textCell(index.etag), textCell(s3.etag)],
    ['Version', textCell(index.version_id), textCell(s3.version_id)],
    ['Modified', <Time at={index.last_modified} />, <Time at={s3.last_modified} />],
    ['Storage class', textCell(index.storage_class), textCell(s3.storage_class)],
    ['Content type', textCell(index.content_type), textCell(s3.content_type)],
    ['User metadata', textCell(named(index.user_metadata)), textCell(named(s3.user_metadata))],
    ['Tags', textCell(named(index.tags)), textCell(named(s3.tags))],
    ['Expires', <Time at={index.expires_at} />, <Time at={s3.expires_at} />],
  ] as const;
  return (
    <Table
      label="Index and S3 side by side"
      columns={[
        ['Field', ([name]) => name, 'row'],
        ['Index', ([, left]) => left],
        ['S3', ([, , right]) => right],
      ]}
      rows={rows}
      keyOf={([name]) => name}
    />
  );
}

function agreementText(agrees: Explanation['agrees']): string {
  return agrees === 'unknown' ? 'not known' : agrees ? 'yes' : 'no';
}

function MoreFacts({ of: { agrees, index, storage } }: { readonly of: Explanation }) {
  return (
    <Details
      of={[
        ['Index and S3 agree', agreementText(agrees)],
        ...(index === undefined ? [] : writtenFacts(index)),
        [
          'S3 answered',
          'fault' in storage ? <Text>{`${storage.fault.reason} (${storage.fault.code})`}</Text> : <Time at={storage.observed_at} />,
        ],
        ['What to do', 'fault' in storage && storage.advice !== undefined && <Advice>{storage.advice}</Advice>],
      ]}
    />
  );
}

/** Leads to objects with the same etag and size. */
function SameBytes({ of: { index } }: { readonly of: Explanation }) {
  if (index?.etag === undefined || index.size === undefined) return null;
  return (
    <p>
      <Link page="search" choices={sameChoices(index.etag, index.size)}>
        Objects with the same etag and size
      </Link>{' '}
      <small class="quiet">
        (Equal bytes may have other etags, as after a multipart upload or with KMS, so these are not all duplicates.)
      </small>
    </p>
  );
}

function writtenFacts(index: NonNullable<Explanation['index']>) {
  return [
    ['Written', <Time at={index.indexed_at} />],
    ['Written because of', <Text>{index.event_name ?? index.source}</Text>],
    ['Settled', index.settled ? 'yes' : 'no: it is checked again'],
    ['Deleted', index.deleted_at !== undefined && <Time at={index.deleted_at} />],
  ] as const;
}
