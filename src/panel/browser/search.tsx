/** Search: what the person asks for is in the address, so that a search is a link. */
import { useState } from 'preact/hooks';
import type { StoredObject } from '../../api/search.ts';
import { addressOf, call, type RequestTo } from './api.ts';
import { copiedCommand, copiedKey, copiedUri, shellWord } from './copied.ts';
import { useLoaded, usePages, type Pages } from './load.ts';
import { pastedObject } from './pasted.ts';
import { Field, Form, Select } from './form.tsx';
import { CopyButton, Link, Listed, Size, Table, Text, Time } from './parts.tsx';
import { go, hrefOf, type Choices } from './place.ts';

/** Enough for a screen; more by a click. */
const PAGE = 50;

/** The choices that are parameters of a search. */
const parameters = ['q', 'bucket', 'prefix', 'extension'] as const;

type Query = NonNullable<RequestTo<'GET /v1/objects'>['query']>;

/** The request that the address asks for. */
export function queryOf(choices: Choices): Readonly<Partial<Record<(typeof parameters)[number], string>>> {
  return Object.fromEntries(
    parameters.flatMap((name) => (choices[name] === undefined || choices[name] === '' ? [] : [[name, choices[name]]])),
  );
}

/** The same search on the command line. */
export function commandOf({ q = '', ...filters }: Query): string {
  const words = q.split(/\s+/).filter((word) => word !== '');
  const options = Object.entries(filters).map(([name, value]) => `--${name} ${shellWord(String(value))}`);
  return ['npx tally search', ...options, ...(words.length === 0 ? [] : ['--', ...words.map(shellWord)])].join(' ');
}

function curlOf(query: Query): string {
  return `curl ${shellWord(addressOf('GET /v1/objects', { query }).href)}`;
}

export function SearchPage({ choices }: { readonly choices: Choices }) {
  const query = queryOf(choices);
  const key = `search ${JSON.stringify(query)}`;
  const found = usePages<StoredObject>(key, (cursor, signal) =>
    call('GET /v1/objects', { query: { ...query, limit: PAGE, ...(cursor !== undefined && { cursor }) } }, signal),
  );
  return (
    <>
      <h1>Search</h1>
      <SearchForm key={key} choices={choices} />
      <Results found={found} query={query} />
    </>
  );
}

/** What is typed becomes the address once it is submitted. The address of an object leads to the object. */
function SearchForm({ choices }: { readonly choices: Choices }) {
  const [typed, setTyped] = useState(choices);
  const buckets = useLoaded('names of buckets', (signal) => call('GET /v1/buckets', {}, signal));
  const names = buckets.value?.items.map(({ bucket }) => bucket) ?? [];
  const known = typed['bucket'] === undefined || names.includes(typed['bucket']) ? names : [typed['bucket'], ...names];
  const set = (name: string) => (value: string) => setTyped({ ...typed, [name]: value });
  async function submit(): Promise<void> {
    const object = pastedObject(typed['q'] ?? '');
    go(object === undefined ? hrefOf('search', queryOf(typed)) : hrefOf('object', { bucket: object.bucket, key: object.key }));
  }
  return (
    <Form submit="Search" onSubmit={submit}>
      <Field
        id="search-box"
        type="search"
        label="Words of the key"
        value={typed['q'] ?? ''}
        onChange={set('q')}
        hint="Each word must be in the key; the last may be the beginning of a word. Or paste an s3:// address, an ARN or a link to an object."
      />
      <div class="columns">
        <Select
          label="Bucket"
          value={typed['bucket'] ?? ''}
          choices={[['', 'all buckets'], ...known.map((name) => [name, name] as const)]}
          onChange={set('bucket')}
        />
        <Field label="Prefix" value={typed['prefix'] ?? ''} onChange={set('prefix')} />
        <Field label="Extension" value={typed['extension'] ?? ''} onChange={set('extension')} />
      </div>
    </Form>
  );
}

function Results({ found, query }: { readonly found: Pages<StoredObject>; readonly query: Query }) {
  return (
    <section aria-labelledby="results-heading">
      <h2 id="results-heading">Objects</h2>
      <Listed pages={found} empty={<NothingFound query={query} />}>
        {(objects) => <ObjectTable objects={objects} />}
      </Listed>
      <p class="actions">
        <CopyButton copied={{ text: commandOf(query), isJson: false }}>Copy as command</CopyButton>
        <CopyButton copied={{ text: curlOf(query), isJson: false }}>Copy as curl</CopyButton>
      </p>
    </section>
  );
}

function NothingFound({ query: { bucket = '', q = '', prefix = '' } }: { readonly query: Query }) {
  const [name, setName] = useState(bucket);
  const [key, setKey] = useState(prefix === '' ? q : prefix);
  return (
    <div class="empty">
      <p>No object in the index matches.</p>
      <details>
        <summary>Why is it not here?</summary>
        <Form submit="Ask S3 and the index" onSubmit={async () => go(hrefOf('object', { bucket: name, key }))}>
          <Field label="Bucket" value={name} onChange={setName} isRequired />
          <Field label="Key" value={key} onChange={setKey} isRequired />
        </Form>
        {bucket !== '' && (
          <p>
            <Link page="gaps" choices={{ bucket, state: 'open' }}>
              Open gaps of this bucket
            </Link>
          </p>
        )}
      </details>
    </div>
  );
}

function ObjectTable({ objects }: { readonly objects: readonly StoredObject[] }) {
  return (
    <Table label="Objects found" heads={['Key', 'Bucket', 'Size', 'Modified', 'Copy']}>
      {objects.map(({ bucket, key, size, last_modified: modified }) => (
        <tr key={`${bucket} ${key}`}>
          <th scope="row" class="key">
            <Link page="object" choices={{ bucket, key }} isRow>
              <Text>{key}</Text>
            </Link>
          </th>
          <td>
            <Text>{bucket}</Text>
          </td>
          <td>
            <Size bytes={size} />
          </td>
          <td>
            <Time at={modified} />
          </td>
          <td class="copies">
            <CopyButton copied={copiedKey(key)}>Key</CopyButton>
            <CopyButton copied={copiedUri(bucket, key)}>URI</CopyButton>
            <CopyButton copied={copiedCommand(bucket, key)}>aws</CopyButton>
          </td>
        </tr>
      ))}
    </Table>
  );
}
