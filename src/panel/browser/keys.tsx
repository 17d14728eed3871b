/** API keys: those of the person. A secret is shown once. */
import { useState } from 'preact/hooks';
import type { ApiKey } from '../../api/api-keys.ts';
import { printable } from '../../domain/printable.ts';
import { call, type AnswerTo } from './api.ts';
import { facts } from './facts.ts';
import { Left } from './key-days.tsx';
import { usePages } from './load.ts';
import { Check, Field, FormDialog } from './form.tsx';
import { announce, type Column, Dialog, Listed, Table, Text, Time } from './parts.tsx';
import { may, session } from './session.ts';

export function KeysPage() {
  const keys = usePages<ApiKey>('own keys', (cursor, signal) =>
    call('GET /v1/api-keys', { query: cursor === undefined ? {} : { cursor } }, signal),
  );
  const [open, setOpen] = useState<'create' | 'leaked' | { readonly revoke: ApiKey }>();
  const [created, setCreated] = useState<AnswerTo<'POST /v1/api-keys'>>();
  function close(): void {
    setOpen(undefined);
    setCreated(undefined);
    keys.reload();
  }
  return (
    <>
      <div class="heading">
        <h1>API keys</h1>
        {may('POST /v1/api-keys') && (
          <button type="button" onClick={() => setOpen('create')}>
            Create key
          </button>
        )}
      </div>
      <p>
        Keys with which your programs use Tally.{' '}
        <button type="button" class="outline small" onClick={() => setOpen('leaked')}>
          A secret has leaked…
        </button>
      </p>
      <Listed pages={keys} empty={<p class="empty">You have no key. Create one for each program, with a name that says what it is for.</p>}>
        {(items) => <KeyTable keys={items} revoke={(key) => setOpen({ revoke: key })} />}
      </Listed>
      {open === 'create' && created === undefined && <CreateDialog onCreated={setCreated} onClose={close} />}
      {open === 'create' && created !== undefined && <SecretDialog created={created} onClose={close} />}
      {open === 'leaked' && <LeakedDialog onClose={close} />}
      {typeof open === 'object' && (
        <RevokeDialog
          name={open.revoke.name}
          revoke={() => call('DELETE /v1/api-keys/{id}', { params: { id: open.revoke.id } })}
          onClose={close}
        />
      )}
    </>
  );
}

/** What a table of keys shows of each besides its name. */
export const keyColumns: readonly Column<ApiKey>[] = [
  ['Fingerprint', ({ fingerprint }) => <code>{fingerprint}</code>],
  ['Left', (key) => <Left of={key} />],
  ['Created', ({ created_at: at }) => <Time at={at} />],
  ['Last used', ({ last_used_at: at }) => <Time at={at} />],
  ['May', ({ scopes }) => scopes.join(', ')],
];

function KeyTable({ keys, revoke }: { readonly keys: readonly ApiKey[]; readonly revoke: (key: ApiKey) => void }) {
  const columns: readonly Column<ApiKey>[] = [
    ['Name', ({ name }) => <Text>{name}</Text>, 'row'],
    ...keyColumns,
    [
      'Actions',
      (key) => (
        <button type="button" class="danger outline small" aria-label={`Revoke ${printable(key.name)}`} onClick={() => revoke(key)}>
          Revoke
        </button>
      ),
    ],
  ];
  return <Table label="Your API keys" columns={columns} rows={keys} keyOf={({ id }) => id} />;
}

interface CreateProps {
  readonly onCreated: (created: AnswerTo<'POST /v1/api-keys'>) => void;
  readonly onClose: () => void;
}

function CreateDialog({ onCreated, onClose }: CreateProps) {
  const [name, setName] = useState('');
  const [days, setDays] = useState(String(facts.keyDays.usual));
  const mine = session.read()?.scopes ?? [];
  const [scopes, setScopes] = useState<ReadonlySet<string>>(new Set(['read']));
  async function create(): Promise<void> {
    const chosen = facts.keyScopes.filter((scope) => scopes.has(scope));
    onCreated(await call('POST /v1/api-keys', { body: { name, expires_in_days: Number(days), scopes: chosen } }));
  }
  return (
    <FormDialog title="Create an API key" onClose={onClose} submit="Create" onSubmit={create}>
      <Field label="Name" value={name} onChange={setName} isRequired hint="What the key is for, such as: nightly export, production." />
      <Field label="Days until it ends" type="number" value={days} onChange={setDays} isRequired hint={`1 to ${facts.keyDays.max}.`} />
      <fieldset>
        <legend>What it may do</legend>
        {facts.keyScopes
          .filter((scope) => mine.includes(scope))
          .map((scope) => (
            <Check
              key={scope}
              label={scope}
              isChecked={scopes.has(scope)}
              isDisabled={scope === 'read'}
              onChange={(isChecked) => setScopes(new Set(isChecked ? [...scopes, scope] : [...scopes].filter((each) => each !== scope)))}
            />
          ))}
      </fieldset>
    </FormDialog>
  );
}

/** The secret is in the memory of this dialog only, and is gone when it is closed. */
function SecretDialog({
  created: { key, secret },
  onClose,
}: {
  readonly created: AnswerTo<'POST /v1/api-keys'>;
  readonly onClose: () => void;
}) {
  const [note, setNote] = useState('');
  /** Nothing outside of this dialog gets to know the secret, where it cannot be copied either. */
  async function copySecret(): Promise<void> {
    try {
      await navigator.clipboard.writeText(secret);
      setNote('Copied.');
    } catch {
      setNote('The browser does not permit copying: select the secret above.');
    }
  }
  return (
    <Dialog title="The secret of the key" onClose={onClose}>
      <p>
        This is the only time that the secret of <Text>{key.name}</Text> is shown. Copy it into a secret store now.
      </p>
      <pre tabIndex={0} class="secret">
        {secret}
      </pre>
      <p role="status">{note}</p>
      <div class="actions">
        <button type="button" onClick={() => void copySecret()}>
          Copy
        </button>
        <button type="button" class="secondary outline" onClick={onClose}>
          I have copied it
        </button>
      </div>
    </Dialog>
  );
}

function LeakedDialog({ onClose }: { readonly onClose: () => void }) {
  const [secret, setSecret] = useState('');
  async function revoke(): Promise<void> {
    await call('POST /v1/api-keys/revoke', { body: { secret } });
    announce('If there was a key with this secret, it is revoked.');
    onClose();
  }
  return (
    <FormDialog title="Revoke a key by its secret" onClose={onClose} submit="Revoke" onSubmit={revoke} isDanger>
      <Field label="Secret" value={secret} onChange={setSecret} isRequired hint="Every process refuses the key within 5 s." />
    </FormDialog>
  );
}

interface RevokeProps {
  readonly name: string;
  readonly revoke: () => Promise<unknown>;
  readonly onClose: () => void;
}

export function RevokeDialog({ name, revoke, onClose }: RevokeProps) {
  async function act(): Promise<void> {
    await revoke();
    announce('The key is revoked.');
    onClose();
  }
  return (
    <FormDialog title="Revoke this key?" onClose={onClose} submit="Revoke" onSubmit={act} isDanger>
      <p>
        Programs that use <Text>{name}</Text> are refused within 5 s, and it cannot be undone.
      </p>
    </FormDialog>
  );
}
