/** The API keys of all users, for administrators: which are unused, and whose. */
import { useState } from 'preact/hooks';
import type { AnyApiKey } from '../../api/api-keys.ts';
import { printable } from '../../domain/printable.ts';
import { call, type RequestTo } from './api.ts';
import { keyColumns, RevokeDialog } from './keys.tsx';
import { usePages } from './load.ts';
import { Chosen, Select } from './form.tsx';
import { type Column, Listed, Table, Text } from './parts.tsx';
import { go, hrefOf, type Choices } from './place.ts';

type Query = NonNullable<RequestTo<'GET /v1/admin/api-keys'>['query']>;

function queryOf({ email = '', key_name: name = '', status = '', unused_since: since = '' }: Choices): Query {
  return {
    ...(email !== '' && { email }),
    ...(name !== '' && { key_name: name }),
    ...((status === 'ACTIVE' || status === 'EXPIRED') && { status }),
    ...(since !== '' && { unused_since: since }),
  };
}

export function AllKeysPage({ choices }: { readonly choices: Choices }) {
  const query = queryOf(choices);
  const key = `all keys ${JSON.stringify(query)}`;
  const keys = usePages<AnyApiKey>(key, (cursor, signal) =>
    call('GET /v1/admin/api-keys', { query: { ...query, ...(cursor !== undefined && { cursor }) } }, signal),
  );
  const [revoked, setRevoked] = useState<AnyApiKey>();
  return (
    <>
      <h1>All API keys</h1>
      <KeyFilter choices={choices} />
      <Listed pages={keys} empty={<p class="empty">No key matches.</p>}>
        {(items) => <AllKeysTable keys={items} revoke={setRevoked} />}
      </Listed>
      {revoked !== undefined && (
        <RevokeDialog
          name={revoked.name}
          revoke={() => call('DELETE /v1/admin/api-keys/{id}', { params: { id: revoked.id } })}
          onClose={() => {
            setRevoked(undefined);
            keys.reload();
          }}
        />
      )}
    </>
  );
}

function KeyFilter({ choices }: { readonly choices: Choices }) {
  const set = (name: string) => (value: string) => go(hrefOf('all-keys', { ...choices, [name]: value }));
  return (
    <div class="filters">
      <Chosen label="E-mail address" value={choices['email'] ?? ''} onChosen={set('email')} />
      <Chosen label="Name of the key" value={choices['key_name'] ?? ''} onChosen={set('key_name')} />
      <Select
        label="Status"
        value={choices['status'] ?? ''}
        onChange={set('status')}
        choices={[
          ['', 'all'],
          ['ACTIVE', 'ACTIVE'],
          ['EXPIRED', 'EXPIRED'],
        ]}
      />
      <Chosen label="Unused since (UTC)" type="date" value={choices['unused_since'] ?? ''} onChosen={set('unused_since')} />
    </div>
  );
}

function AllKeysTable({ keys, revoke }: { readonly keys: readonly AnyApiKey[]; readonly revoke: (key: AnyApiKey) => void }) {
  const columns: readonly Column<AnyApiKey>[] = [
    [
      'Owner',
      (key) => (
        <>
          <Text>{key.user_email}</Text>
          {!key.user_email_verified && <small> (not verified)</small>}
          {key.owner_disabled && <small> (disabled)</small>}
        </>
      ),
      'row',
    ],
    ['Name', ({ name }) => <Text>{name}</Text>],
    ...keyColumns,
    [
      'Actions',
      (key) => (
        <button
          type="button"
          class="danger outline small"
          aria-label={`Revoke ${printable(key.name)} of ${printable(key.user_email)}`}
          onClick={() => revoke(key)}
        >
          Revoke
        </button>
      ),
    ],
  ];
  return <Table label="API keys of all users" columns={columns} rows={keys} keyOf={({ id }) => id} />;
}
