/** Whether the process can do its work: its own checks, each with what to do. */
import { readiness } from './api.ts';
import { useLoaded } from './load.ts';
import { Advice, type Column, Link, Shown, Table, Text } from './parts.tsx';
import { plainText } from './words.ts';

const REFRESH_MS = 5_000;

type Check = Awaited<ReturnType<typeof readiness>>['checks'][string];

const columns: readonly Column<readonly [name: string, check: Check]>[] = [
  ['Check', ([name]) => plainText(name), 'row'],
  ['Status', ([, { status }]) => <span class={`state ${status === 'ok' ? 'good' : 'bad'}`}>{status}</span>],
  ['What happened', ([, { detail }]) => detail !== undefined && <Text>{detail}</Text>],
  [
    'What to do',
    ([name, { advice }]) => (
      <>
        {advice !== undefined && [<Advice>{advice}</Advice>, ' ']}
        {name.startsWith('bucket') && <Link page="buckets">Show the buckets</Link>}
      </>
    ),
  ],
];

export function HealthPage() {
  const loaded = useLoaded('health', readiness, { everyMs: REFRESH_MS });
  return (
    <>
      <h1>Health</h1>
      <Shown loaded={loaded} isLive>
        {(value) => (
          <>
            <p>
              <span class={`state ${value.ready ? 'good' : 'bad'}`}>{value.ready ? 'ready' : 'not ready'}</span>{' '}
              {Object.entries(value.roles)
                .map(([role, of]) => `${role}: ${of.ready ? 'ready' : 'not ready'}`)
                .join(', ')}
            </p>
            <Table label="Checks" columns={columns} rows={Object.entries(value.checks)} keyOf={([name]) => name} />
            <p>Lag and throughput over time are in Grafana: the dashboard is in the folder config/monitoring.</p>
          </>
        )}
      </Shown>
    </>
  );
}
