/** People who have logged in, and who becomes an administrator. */
import { useState } from 'preact/hooks';
import type { AppointmentAnswer, User, UsersAnswer } from '../../api/users.ts';
import { printable } from '../../domain/printable.ts';
import { call } from './api.ts';
import { usePages } from './load.ts';
import { Act, Field, FormDialog } from './form.tsx';
import { announce, type Column, Listed, Table, Text, Time } from './parts.tsx';
import { session } from './session.ts';

export function UsersPage() {
  const users = usePages<User, UsersAnswer>('users', (cursor, signal) =>
    call('GET /v1/admin/users', { query: cursor === undefined ? {} : { cursor } }, signal),
  );
  const waiting = users.first?.waiting ?? [];
  const [isAppointing, setAppointing] = useState(false);
  return (
    <>
      <div class="heading">
        <h1>Users</h1>
        <button type="button" onClick={() => setAppointing(true)}>
          Make an administrator…
        </button>
      </div>
      <Listed pages={users} empty={<p class="empty">No person has logged in.</p>}>
        {(items) => <UserTable users={items} onChanged={users.reload} />}
      </Listed>
      <h2>Appointments that wait for a login</h2>
      {waiting.length === 0 ? (
        <p class="empty">No appointment waits.</p>
      ) : (
        <AppointmentTable appointments={waiting} onChanged={users.reload} />
      )}
      {isAppointing && (
        <AppointDialog
          onClose={() => {
            setAppointing(false);
            users.reload();
          }}
        />
      )}
    </>
  );
}

function UserTable({ users, onChanged }: { readonly users: readonly User[]; readonly onChanged: () => void }) {
  const own = session.read()?.user.id;
  const columns: readonly Column<User>[] = [
    [
      'E-mail',
      (user) => (
        <>
          <Text>{user.email}</Text>
          {user.id === own && <small> (you)</small>}
          {!user.email_verified && <small> (not verified)</small>}
        </>
      ),
      'row',
    ],
    [
      'Role',
      ({ role, role_source: source, appointed_by: by }) => (
        <>
          {role}
          {source !== 'none' && <small> by {source === 'rule' ? 'a rule' : (by ?? 'an appointment')}</small>}
        </>
      ),
    ],
    ['Last login', ({ last_login_at: at }) => <Time at={at} />],
    ['First login', ({ created_at: at }) => <Time at={at} />],
    ['Issuer', ({ issuer }) => <Text>{issuer}</Text>],
    [
      'State',
      ({ disabled_at: at }) =>
        at === undefined ? (
          'enabled'
        ) : (
          <>
            <span class="state notable">disabled</span> <Time at={at} />
          </>
        ),
    ],
    ['Actions', (user) => <UserAct user={user} onChanged={onChanged} />],
  ];
  return <Table label="Users" columns={columns} rows={users} keyOf={({ id }) => id} />;
}

function UserAct({ user: { id, email, disabled_at: disabledAt }, onChanged }: { readonly user: User; readonly onChanged: () => void }) {
  const [isAsked, setAsked] = useState(false);
  async function disable(): Promise<void> {
    await call('PATCH /v1/admin/users/{id}', { params: { id }, body: { disabled: true } });
    announce('The user is disabled.');
    setAsked(false);
    onChanged();
  }
  async function enable(): Promise<void> {
    await call('PATCH /v1/admin/users/{id}', { params: { id }, body: { disabled: false } });
    announce('The user is enabled.');
    onChanged();
  }
  if (disabledAt !== undefined) return <Act act={enable}>Enable</Act>;
  return (
    <>
      <button type="button" class="danger outline small" aria-label={`Disable ${printable(email)}`} onClick={() => setAsked(true)}>
        Disable
      </button>
      {isAsked && (
        <FormDialog title="Disable this user?" onClose={() => setAsked(false)} submit="Disable" onSubmit={disable} isDanger>
          <p>
            Sessions of <Text>{email}</Text> are refused at once, and API keys within 5 s.
          </p>
        </FormDialog>
      )}
    </>
  );
}

interface AppointmentTableProps {
  readonly appointments: readonly AppointmentAnswer[];
  readonly onChanged: () => void;
}

function AppointmentTable({ appointments, onChanged }: AppointmentTableProps) {
  const personOf = ({ email, sub = '' }: AppointmentAnswer): string => email ?? sub;
  const columns: readonly Column<AppointmentAnswer>[] = [
    ['Person', (appointment) => <Text>{personOf(appointment)}</Text>, 'row'],
    ['Appointed by', ({ appointed_by: by }) => <Text>{by}</Text>],
    ['Since', ({ created_at: at }) => <Time at={at} />],
    ['Ends', ({ expires_at: at }) => <Time at={at} />],
    ['Actions', (appointment) => <Act act={() => withdraw(appointment, onChanged)}>Withdraw</Act>],
  ];
  return <Table label="Appointments that wait for a login" columns={columns} rows={appointments} keyOf={personOf} />;
}

async function withdraw({ email, sub = '' }: AppointmentAnswer, onChanged: () => void): Promise<void> {
  await call('PATCH /v1/admin/users/{id}', { params: { id: email ?? `sub:${sub}` }, body: { role: 'user' } });
  announce('The appointment is withdrawn.');
  onChanged();
}

function AppointDialog({ onClose }: { readonly onClose: () => void }) {
  const [email, setEmail] = useState('');
  async function appointment(): Promise<void> {
    const { waiting } = await call('PATCH /v1/admin/users/{id}', { params: { id: email.trim() }, body: { role: 'admin' } });
    announce(waiting === undefined ? 'The person is an administrator now.' : 'It counts at the first login of the person, within 7 days.');
    onClose();
  }
  return (
    <FormDialog title="Make an administrator" onClose={onClose} submit="Appoint" onSubmit={appointment}>
      <Field
        label="E-mail address"
        type="email"
        value={email}
        onChange={setEmail}
        isRequired
        hint="The issuer must have verified it. It counts at once, and for a person who has not logged in yet at the first login, within 7 days."
      />
    </FormDialog>
  );
}
