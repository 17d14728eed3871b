/** One object: what the index holds, what S3 reports now, and why a search finds it or does not. */
import type { ComponentChildren } from 'preact';
import type { Explanation } from '../../registry/contract/objects.ts';
import { ReindexButton } from './bucket-act.tsx';
import { useAnswer } from './load.ts';
import { Advice, CopyButton, type Detail, Details, Link, Shown, Size, Text, Time } from './parts.tsx';
import type { Choices } from './place.ts';
import { copiesOf, keyParts } from './words.ts';

export function ObjectPage({ choices: { bucket = '', key = '' } }: { readonly choices: Choices }) {
  return (
    <>
      <h1>
        <Text>{key}</Text>
      </h1>
      <ObjectView bucket={bucket} name={key} />
    </>
  );
}

/** What is known of an object, without its heading. */
export function ObjectView({ bucket, name }: { readonly bucket: string; readonly name: string }) {
  const loaded = useAnswer('GET /v1/buckets/{bucket}/explain', { params: { bucket }, query: { key: name } });
  return (
    <>
      <p>
        in{' '}
        <Link page="bucket" choices={{ bucket }}>
          <Text>{bucket}</Text>
        </Link>
      </p>
      <p class="actions">
        {copiesOf(bucket, name).map(([text, copied]) => (
          <CopyButton key={text} copied={copied}>
            {text}
          </CopyButton>
        ))}
      </p>
      <Shown loaded={loaded} busy="Asking the index and S3…">
        {(value) => (
          <>
            <p class="sentence">
              <Sentence>{value.sentence}</Sentence>
            </p>
            <p class="actions">
              {value.agrees === false && (
                <ReindexButton bucket={bucket} prefix={keyParts(name)[0]}>
                  Re-index this folder
                </ReindexButton>
              )}
              <button type="button" class="outline small" onClick={loaded.reload}>
                Ask again
              </button>
            </p>
            <Comparison of={value} />
            <MoreFacts of={value} />
          </>
        )}
      </Shown>
    </>
  );
}

/** A sentence of the registry, whose times are shown as everywhere. */
function Sentence({ children }: { readonly children: string }) {
  const parts = children.split(/(?:at )?(\d{4}-\d\d-\d\dT[\d:.]+Z)/);
  return <>{parts.map((part, index) => (index % 2 === 1 ? <Time key={index} at={part} /> : <Text key={index}>{part}</Text>))}</>;
}

const pairs = (texts: Readonly<Record<string, string>>): string =>
  Object.entries(texts)
    .map(([name, value]) => `${name}=${value}`)
    .join(', ');

type Stored = NonNullable<Explanation['index']>;

/** What the index and S3 both may have of an object. */
const fieldNames = {
  size: 'Size',
  etag: 'Etag',
  version_id: 'Version',
  last_modified: 'Modified',
  storage_class: 'Storage class',
  content_type: 'Content type',
  user_metadata: 'User metadata',
  tags: 'Tags',
  expires_at: 'Expires',
} as const;
type Field = keyof typeof fieldNames;
type Facts = { readonly [Name in Field]?: Stored[Name] | undefined };

const fields: readonly Field[] = Object.keys(fieldNames).filter((name): name is Field => Object.hasOwn(fieldNames, name));

/** How a field is shown; false: it has nothing. */
function cellOf(of: Facts, field: Field): ComponentChildren {
  const value = of[field];
  if (value === undefined || value === '') return false;
  if (typeof value === 'number') return <Size bytes={value} />;
  if (typeof value === 'object') return pairs(value) !== '' && <Text>{pairs(value)}</Text>;
  return field === 'last_modified' || field === 'expires_at' ? <Time at={value} /> : <Text>{value}</Text>;
}

/** The index and S3 side by side, on a telephone too; what neither of them knows is left out. */
function Comparison({ of: { index, storage } }: { readonly of: Explanation }) {
  const present = 'state' in storage && storage.state.present ? storage.state : undefined;
  const { size_bytes: bytes, ...s3 } = present ?? {};
  const inIndex = index === undefined ? 'nothing' : index.deleted ? 'a tombstone' : 'an object';
  const inStorage = 'fault' in storage ? 'not known' : present === undefined ? 'nothing' : 'an object';
  const rows = fields
    .map((field) => [fieldNames[field], cellOf(index ?? {}, field), cellOf({ ...s3, size: bytes }, field)] as const)
    .filter(([, left, right]) => left !== false || right !== false);
  return (
    <table class="compared" aria-label="Index and S3 side by side">
      <thead>
        <tr>
          <td />
          <th scope="col">Index</th>
          <th scope="col">S3</th>
        </tr>
      </thead>
      <tbody>
        {([['Holds', inIndex, inStorage], ...rows] as const).map(([name, left, right]) => (
          <tr key={name}>
            <th scope="row">{name}</th>
            <td>{left === false ? <span class="quiet">–</span> : left}</td>
            <td>{right === false ? <span class="quiet">–</span> : right}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function writtenFacts(index: Stored): readonly Detail[] {
  return [
    ['Written', <Time at={index.indexed_at} />],
    ['Written because of', <Text>{index.event_name ?? index.source}</Text>],
    ['Settled', index.settled ? 'yes' : 'no: it is checked again'],
    ['Deleted', index.deleted_at !== undefined && <Time at={index.deleted_at} />],
  ];
}

function MoreFacts({ of: { agrees, index, storage } }: { readonly of: Explanation }) {
  return (
    <Details
      of={[
        ['Index and S3 agree', agrees === 'unknown' ? 'not known' : agrees ? 'yes' : 'no'],
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
