/** One object: what the index holds, what S3 reports now, and why a search does or doesn't find it. */
import type { ComponentChildren } from 'preact';
import type { Explanation } from '../../registry/contract/objects.ts';
import { ReindexButton } from './bucket-act.tsx';
import { useAnswer } from './load.ts';
import { Advice, type Column, CopyButton, type Detail, Details, Link, Shown, Size, Table, Text, Time } from './parts.tsx';
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

/** What is known about an object, without the heading. */
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
            {value.agrees === false && (
              <p>
                <ReindexButton bucket={bucket} prefix={keyParts(name)[0]}>
                  Re-index this folder
                </ReindexButton>
              </p>
            )}
            <Comparison of={value} />
            <MoreFacts of={value} />
          </>
        )}
      </Shown>
    </>
  );
}

/** A sentence from the registry, with its times in the panel's form. */
function Sentence({ children }: { readonly children: string }) {
  const parts = children.split(/(?:at )?(\d{4}-\d\d-\d\dT[\d:.]+Z)/);
  return <>{parts.map((part, index) => (index % 2 === 1 ? <Time key={index} at={part} /> : <Text key={index}>{part}</Text>))}</>;
}

const pairs = (texts: Readonly<Record<string, string>>): string =>
  Object.entries(texts)
    .map(([name, value]) => `${name}=${value}`)
    .join(', ');

type Stored = NonNullable<Explanation['index']>;

/** Fields of an object that both the index and S3 may have. */
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

/** How to show a field; false: it has no value. */
function cellOf(of: Facts, field: Field): ComponentChildren {
  const value = of[field];
  if (value === undefined || value === '') return false;
  if (typeof value === 'number') return <Size bytes={value} />;
  if (typeof value === 'object') return pairs(value) !== '' && <Text>{pairs(value)}</Text>;
  return field === 'last_modified' || field === 'expires_at' ? <Time at={value} /> : <Text>{value}</Text>;
}

type Row = readonly [name: string, index: ComponentChildren, storage: ComponentChildren];

const none = <span class="quiet">–</span>;
const comparedColumns: readonly Column<Row>[] = [
  ['Field', ([name]) => name, 'row'],
  ['Index', ([, index]) => index || none],
  ['S3', ([, , storage]) => storage || none],
];

/** The index and S3 side by side, without fields that neither has. */
function Comparison({ of: { index, storage } }: { readonly of: Explanation }) {
  const present = 'state' in storage && storage.state.present ? storage.state : undefined;
  const { size_bytes: bytes, ...s3 } = present ?? {};
  const inIndex = index === undefined ? 'nothing' : index.deleted ? 'a tombstone' : 'an object';
  const inStorage = 'fault' in storage ? 'not known' : present === undefined ? 'nothing' : 'an object';
  const rows = fields.map((field): Row => [fieldNames[field], cellOf(index ?? {}, field), cellOf({ ...s3, size: bytes }, field)]);
  return (
    <Table
      label="Index and S3 side by side"
      look="compared"
      columns={comparedColumns}
      rows={[['Holds', inIndex, inStorage], ...rows.filter(([, left, right]) => left !== false || right !== false)]}
      keyOf={([name]) => name}
    />
  );
}

function MoreFacts({ of: { agrees, index, storage } }: { readonly of: Explanation }) {
  const fault = 'fault' in storage ? storage : undefined;
  return (
    <Details
      of={[
        ['Index and S3 agree', agrees === 'unknown' ? 'not known' : agrees ? 'yes' : 'no'],
        ...(index === undefined ? [] : writtenFacts(index)),
        [
          'S3 answered',
          fault ? (
            <Text>{`${fault.fault.reason} (${fault.fault.code})`}</Text>
          ) : (
            'observed_at' in storage && <Time at={storage.observed_at} />
          ),
        ],
        ['What to do', fault?.advice !== undefined && <Advice>{fault.advice}</Advice>],
      ]}
    />
  );
}

function writtenFacts(index: Stored): readonly Detail[] {
  return [
    ['Written', <Time at={index.indexed_at} />],
    ['Written because of', <Text>{index.event_name ?? index.source}</Text>],
    ['Settled', index.settled ? 'yes' : 'no: Tally checks it once more'],
    ['Deleted', index.deleted_at !== undefined && <Time at={index.deleted_at} />],
  ];
}
