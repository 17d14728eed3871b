/** People: the setting that overrides all grants, who may read what, who has logged in, and who becomes an administrator at login. */
import type { Grant } from '../../identity/grants/grant.rules.ts';
import type { AppointmentAnswer, User } from '../../registry/contract/users.ts';
import { readingReasons, readsText } from '../../registry/contract/reading-texts.ts';
import { printable } from '../../base/texts.ts';
import { call, type AnswerTo } from './api.ts';
import { AskedAct, Field, Form } from './form.tsx';
import { PAGE_MAX, useAnswer, type Loaded } from './load.ts';
import { announce, type Column, Details, Fold, Listed, Shown, Table, Text, Time } from './parts.tsx';
import type { Choices } from './place.ts';
import { session } from './session.ts';

export function PeoplePage() {
  return (
    <>
      <h1>People</h1>
      <GrantSection />
      <UserSection />
    </>
  );
}

function GrantSection() {
  const grants = useAnswer('GET /v1/admin/grants', { query: { limit: PAGE_MAX } });
  const isEveryone = grants.value?.readers === 'everyone';
  async function remove({ who, where }: Grant): Promise<void> {
    await call('POST /v1/admin/grants/remove', { body: { who, where } });
    announce('The grant is removed.');
  }
  const columns: readonly Column<Grant>[] = [
    ['Who', ({ who }) => <Text>{who}</Text>, 'row'],
    ['May read', ({ where }) => <Text>{where === '*' ? 'every bucket' : where}</Text>],
    ['Granted by', ({ granted_by: by }) => <Text>{by}</Text>],
    ['Since', ({ created_at: since }) => <Time at={since} />],
    [
      'Actions',
      (grant) => (
        <AskedAct
          text="Remove"
          label={`Remove ${printable(grant.who)} from ${printable(grant.where)}`}
          title="Remove this grant?"
          act={() => remove(grant)}
          onClosed={grants.reload}
        >
          <p>
            From the next request on, <Text>{grant.who}</Text> can read <Text>{grant.where}</Text> only through other grants.
          </p>
        </AskedAct>
      ),
    ],
  ];
  return (
    <section aria-labelledby="grants-heading">
      <div class="heading">
        <h2 id="grants-heading">Who may read</h2>
        <AskedAct text="Add grant" look="" title="Add a grant" act={addGrant} onClosed={grants.reload}>
          <Field
            label="Who"
            name="who"
            isRequired
            placeholder="group:analysts"
            hint="user:EMAIL, group:VALUE as the issuer states it, or everyone."
          />
          <Field
            label="May read"
            name="where"
            isRequired
            placeholder="photos/2026/"
            hint="BUCKET, BUCKET/PREFIX, or * for every bucket. A prefix may end within a name: photos/2026 also grants photos/2026-old/."
          />
        </AskedAct>
      </div>
      {isEveryone && (
        <p class="advice">
          Every user can read everything, because <code>TALLY_READERS</code> is <code>everyone</code>. Grants take effect once it is{' '}
          <code>granted</code>.
        </p>
      )}
      <p>A grant lets someone read the keys of a bucket, or those with a prefix. Grants only add up; administrators read everything.</p>
      <Listed
        loaded={grants}
        label="Grants"
        columns={columns}
        keyOf={({ who, where }) => `${who} ${where}`}
        empty={`No grants${isEveryone ? '.' : ': only administrators can read.'}`}
      />
    </section>
  );
}

async function addGrant({ who = '', where = '' }: Choices): Promise<void> {
  const added = await call('POST /v1/admin/grants', { body: { who: who.trim(), where } });
  announce(`${added.who} may read ${added.where}.`);
}

function UserSection() {
  const users = useAnswer('GET /v1/admin/users', { query: { limit: PAGE_MAX } });
  const waiting = users.value?.waiting ?? [];
  return (
    <section aria-labelledby="users-heading">
      <div class="heading">
        <h2 id="users-heading">Users and administrators</h2>
        <AskedAct text="Make an administrator…" look="outline" title="Make an administrator" act={appoint} onClosed={users.reload}>
          <Field
            label="E-mail address"
            name="email"
            type="email"
            isRequired
            hint="The issuer must have verified it. A person who has never logged in must do so within 7 days."
          />
        </AskedAct>
      </div>
      <UserTable users={users} />
      {waiting.length > 0 && <AppointmentTable appointments={waiting} onChanged={users.reload} />}
    </section>
  );
}

function UserTable({ users }: { readonly users: Loaded<AnswerTo<'GET /v1/admin/users'>> }) {
  const onChanged = users.reload;
  const own = session.read()?.user.id;
  async function set({ id }: User, disabled: boolean): Promise<void> {
    await call('PATCH /v1/admin/users/{id}', { params: { id }, body: { disabled } });
    announce(`The user is ${disabled ? 'disabled' : 'enabled'}.`);
  }
  const columns: readonly Column<User>[] = [
    [
      'E-mail',
      ({ id, email, email_verified: isVerified }) => (
        <>
          <Text>{email}</Text>
          {id === own && <small> (you)</small>}
          {!isVerified && <small> (not verified)</small>}
        </>
      ),
      'row',
    ],
    [
      'Role',
      ({ role, role_source: source, appointed_by: by }) => (
        <>
          {role}
          {source !== 'none' && <small> by {source === 'rule' ? 'a rule' : <Text>{by ?? 'an appointment'}</Text>}</small>}
        </>
      ),
    ],
    ['Last login', ({ last_login_at: at }) => <Time at={at} />],
    ['Reads', ({ id }) => <Fold summary="What this person can read">{() => <Access id={id} />}</Fold>],
    ['Disabled', ({ disabled_at: at }) => at !== undefined && <Time at={at} />],
    [
      'Actions',
      (user) =>
        user.disabled_at !== undefined ? (
          <Form submit="Enable" look="outline small" onSubmit={() => set(user, false).then(onChanged)} />
        ) : (
          user.id !== own && (
            <AskedAct
              text="Disable"
              label={`Disable ${printable(user.email)}`}
              title="Disable this user?"
              act={() => set(user, true)}
              onClosed={onChanged}
            >
              <p>
                Tally refuses the sessions of <Text>{user.email}</Text> at once, and the API keys within 5 s.
              </p>
            </AskedAct>
          )
        ),
    ],
  ];
  return <Listed loaded={users} label="Users" columns={columns} keyOf={({ id }) => id} empty="Nobody has logged in." />;
}

interface AppointmentTableProps {
  readonly appointments: readonly AppointmentAnswer[];
  readonly onChanged: () => void;
}

function AppointmentTable({ appointments, onChanged }: AppointmentTableProps) {
  const personOf = ({ email, sub = '' }: AppointmentAnswer): string => email ?? sub;
  async function withdraw({ email, sub = '' }: AppointmentAnswer): Promise<void> {
    await call('PATCH /v1/admin/users/{id}', { params: { id: email ?? `sub:${sub}` }, body: { role: 'user' } });
    announce('The appointment is withdrawn.');
    onChanged();
  }
  const columns: readonly Column<AppointmentAnswer>[] = [
    ['Person', (appointment) => <Text>{personOf(appointment)}</Text>, 'row'],
    ['Appointed by', ({ appointed_by: by }) => <Text>{by}</Text>],
    ['Since', ({ created_at: at }) => <Time at={at} />],
    ['Ends', ({ expires_at: at }) => <Time at={at} />],
    ['Actions', (appointment) => <Form submit="Withdraw" look="danger outline small" onSubmit={() => withdraw(appointment)} />],
  ];
  return (
    <>
      <h3>Administrators at their next login</h3>
      <Table label="Appointments that wait for a login" columns={columns} rows={appointments} keyOf={personOf} />
    </>
  );
}

async function appoint({ email = '' }: Choices): Promise<void> {
  const { waiting } = await call('PATCH /v1/admin/users/{id}', { params: { id: email.trim() }, body: { role: 'admin' } });
  announce(waiting === undefined ? 'The person is an administrator now.' : 'It takes effect at the person’s first login, within 7 days.');
}

/** What a person may read, and why. */
function Access({ id }: { readonly id: string }) {
  const loaded = useAnswer('GET /v1/admin/users/{id}/access', { params: { id } });
  return (
    <Shown loaded={loaded}>
      {({ reads, because, grants, groups, groups_left_out: isLeftOut }) => (
        <Details
          of={[
            ['Reads', <Text>{readsText(reads)}</Text>],
            ['Because', readingReasons[because]],
            ['Grants', <Text>{grants.map(({ who, where }) => `${where} (${who})`).join(', ')}</Text>],
            ['Groups of the last login', <Text>{isLeftOut ? 'too many, so the issuer left them out' : groups.join(', ')}</Text>],
          ]}
        />
      )}
    </Shown>
  );
}
