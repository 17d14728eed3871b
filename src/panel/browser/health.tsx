/** Whether the process can do its work: its own checks, each with what to do. */
import { readiness } from './api.ts';
import { useLoaded } from './load.ts';
import { Advice, Link, Shown, Table, Text } from './parts.tsx';
import { plainText } from './words.ts';

const REFRESH_MS = 5_000;

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
            <Table label="Checks" heads={['Check', 'Status', 'What happened', 'What to do']}>
              {Object.entries(value.checks).map(([name, check]) => (
                <tr key={name}>
                  <th scope="row">{plainText(name)}</th>
                  <td>
                    <span class={`state ${check.status === 'ok' ? 'good' : 'bad'}`}>{check.status}</span>
                  </td>
                  <td>{check.detail !== undefined && <Text>{check.detail}</Text>}</td>
                  <td>
                    {check.advice !== undefined && <Advice>{check.advice}</Advice>}{' '}
                    {name.startsWith('bucket') && <Link page="buckets">Show the buckets</Link>}
                  </td>
                </tr>
              ))}
            </Table>
            <p>Lag and throughput over time are in Grafana: the dashboard is in the folder config/monitoring.</p>
          </>
        )}
      </Shown>
    </>
  );
}
