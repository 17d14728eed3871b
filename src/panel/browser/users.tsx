/** People who have logged in, and who becomes an administrator. */
import { useState } from 'preact/hooks';
import type { AppointmentAnswer, User } from '../../api/users.ts';
import { printable } from '../../domain/printable.ts';
import { call } from './api.ts';
import { usePages } from './load.ts';
import { Act, Field, Form } from './form.tsx';
import { announce, Dialog, Listed, Table, Text, Time } from './parts.tsx';
import { session } from './session.ts';

export function UsersPage() {
  const users = usePages<User>('users', (cursor, signal) =>
    call('GET /v1/admin/users', { query: cursor === undefined ? {} : { cursor } }, signal),
  );
  const appointments = usePages<AppointmentAnswer>('appointments', (cursor, signal) =>
    call('GET /v1/admin/appointments', { query: cursor === undefined ? {} : { cursor } }, signal),
  );
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
      <Listed pages={appointments} empty={<p class="empty">No appointment waits.</p>}>
        {(items) => <AppointmentTable appointments={items} onChanged={appointments.reload} />}
      </Listed>
      {isAppointing && (
        <AppointDialog
          onClose={() => {
            setAppointing(false);
            users.reload();
            appointments.reload();
          }}
        />
      )}
    </>
  );
}

function UserTable({ users, onChanged }: { readonly users: readonly User[]; readonly onChanged: () => void }) {
  const own = session.read()?.user.id;
  return (
    <Table label="Users" heads={['E-mail', 'Role', 'Last login', 'First login', 'Issuer', 'State', 'Actions']}>
      {users.map((user) => (
        <tr key={user.id}>
          <th scope="row">
            <Text>{user.email}</Text>
            {user.id === own && <small> (you)</small>}
            {!user.email_verified && <small> (not verified)</small>}
          </th>
          <td>
            {user.role}
            {user.role_source !== 'none' && <small> by a {user.role_source}</small>}
          </td>
          <td>
            <Time at={user.last_login_at} />
          </td>
          <td>
            <Time at={user.created_at} />
          </td>
          <td>
            <Text>{user.issuer}</Text>
          </td>
          <td>
            {user.disabled_at === undefined
              ? 'enabled'
              : [
                  <span key="state" class="state notable">
                    disabled
                  </span>,
                  ' ',
                  <Time key="at" at={user.disabled_at} />,
                ]}
          </td>
          <td>
            <UserAct user={user} onChanged={onChanged} />
          </td>
        </tr>
      ))}
    </Table>
  );
}

function UserAct({ user: { id, email, disabled_at: disabledAt }, onChanged }: { readonly user: User; readonly onChanged: () => void }) {
  const [isAsked, setAsked] = useState(false);
  async function disable(): Promise<void> {
    await call('POST /v1/admin/users/{id}/disable', { params: { id } });
    announce('The user is disabled.');
    setAsked(false);
    onChanged();
  }
  async function enable(): Promise<void> {
    await call('POST /v1/admin/users/{id}/enable', { params: { id } });
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
        <Dialog title="Disable this user?" onClose={() => setAsked(false)}>
          <Form submit="Disable" onSubmit={disable} onCancel={() => setAsked(false)} isDanger>
            <p>
              Sessions of <Text>{email}</Text> are refused at once, and API keys within 5 s.
            </p>
          </Form>
        </Dialog>
      )}
    </>
  );
}

function AppointmentTable({
  appointments,
  onChanged,
}: {
  readonly appointments: readonly AppointmentAnswer[];
  readonly onChanged: () => void;
}) {
  return (
    <Table label="Appointments that wait for a login" heads={['Person', 'Appointed by', 'Since', 'Ends', 'Actions']}>
      {appointments.map((appointment) => (
        <tr key={appointment.email ?? appointment.sub}>
          <th scope="row">
            <Text>{appointment.email ?? appointment.sub ?? ''}</Text>
          </th>
          <td>
            <Text>{appointment.appointed_by}</Text>
          </td>
          <td>
            <Time at={appointment.created_at} />
          </td>
          <td>
            <Time at={appointment.expires_at} />
          </td>
          <td>
            <Act act={() => withdraw(appointment, onChanged)}>Withdraw</Act>
          </td>
        </tr>
      ))}
    </Table>
  );
}

async function withdraw({ email, sub = '' }: AppointmentAnswer, onChanged: () => void): Promise<void> {
  await call('POST /v1/admin/appointments/withdraw', { body: email === undefined ? { sub } : { email } });
  announce('The appointment is withdrawn.');
  onChanged();
}

function AppointDialog({ onClose }: { readonly onClose: () => void }) {
  const [email, setEmail] = useState('');
  async function appointment(): Promise<void> {
    const appointed = await call('POST /v1/admin/appointments', { body: { email: email.trim() } });
    announce(
      appointed.user_id === undefined
        ? 'It counts at the first login of the person, within 7 days.'
        : 'The person is an administrator now.',
    );
    onClose();
  }
  return (
    <Dialog title="Make an administrator" onClose={onClose}>
      <Form submit="Appoint" onSubmit={appointment} onCancel={onClose}>
        <Field
          label="E-mail address"
          type="email"
          value={email}
          onChange={setEmail}
          isRequired
          hint="The issuer must have verified it. It counts at once, and for a person who has not logged in yet at the first login, within 7 days."
        />
      </Form>
    </Dialog>
  );
}
