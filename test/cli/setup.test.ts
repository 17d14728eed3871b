import { describe, expect, it } from 'vitest';
import { newOwner } from '../../src/connect/names.rules.ts';
import { queueArns, sharedParts } from '../../src/connect/shared.rules.ts';
import { nameOf } from '../../src/connect/shared.rules.ts';
import { type PlannedPart, type SetupPlan, type SetupRequest } from '../../src/connect/setup.ts';
import { createCliWorld } from './world.ts';

const home = { partition: 'aws', region: 'eu-central-1', account: '123456789012' };
const owner = newOwner(queueArns('tally-bucket-events', home).bucket);
const settings = { AWS_REGION: 'eu-central-1', TALLY_QUEUE_URL: 'https://sqs.eu-central-1.amazonaws.com/123456789012/tally-bucket-events' };

function planned(state: PlannedPart['state']): SetupPlan {
  const parts = sharedParts(owner, { queues: queueArns('tally-bucket-events', home), home, region: home.region }).map((part) => ({
    ...part,
    state,
    differences: state === 'different' ? [{ attribute: 'DelaySeconds', wanted: '0', found: '900' }] : [],
  }));
  return {
    region: home.region,
    account: home.account,
    installation: owner.installation,
    parts,
    ...(state === 'as-planned' && { settings }),
  };
}

/** The command line beside parts in this state. */
function createWorld(state: PlannedPart['state'], env: Readonly<Record<string, string>> = {}) {
  const asked: (readonly [string, SetupRequest] | string)[] = [];
  const { run } = createCliWorld({
    env,
    openSetup: async () => ({
      setup: {
        async plan(request) {
          asked.push(['plan', request]);
          return planned(state);
        },
        async apply(request) {
          asked.push(['apply', request]);
          return { ...planned('as-planned'), ...(state !== 'as-planned' && { made: planned(state).parts.map(nameOf) }) };
        },
      },
      close: () => void asked.push('close'),
    }),
  });
  return { asked, run };
}

describe('tally setup', () => {
  it('shows every part, by the name of the settings, and names the command that makes them', async () => {
    const { asked, run } = createWorld('absent', { TALLY_INSTALLATION: '0a1b2c3d' });
    const { exitCode, stdout, stderr } = await run('setup --region eu-west-1');
    const request = { region: 'eu-west-1', installation: '0a1b2c3d' };
    expect({ exitCode, asked }).toMatchObject({ exitCode: 0, asked: [['plan', request], 'close'] });
    expect(stdout).toMatch(
      /\+ queue .*:tally-dead-letters\n[^]*\+ queue .*:tally-bucket-events\n[^]*"maxReceiveCount": 100[^]*\+ topic .*-events\n/,
    );
    expect(stderr).toContain('tally setup --apply --region eu-west-1');
  });

  it('prints nothing but the settings for a shell once everything is made', async () => {
    const { asked, run } = createWorld('absent');
    const { exitCode, stdout, stderr } = await run('setup --apply');
    expect({ exitCode, asked }).toMatchObject({ exitCode: 0, asked: [['apply', {}], 'close'] });
    expect(stdout).toBe(`export AWS_REGION=eu-central-1\nexport TALLY_QUEUE_URL=${settings.TALLY_QUEUE_URL}\n`);
    expect(stderr).toMatch(/^Created or corrected:\n {2}queue .*tally-dead-letters\n[^]*Start Tally with these settings\.\n$/);
    const again = await createWorld('as-planned').run('setup --apply');
    expect(again).toMatchObject({ exitCode: 0, stdout, stderr: expect.stringContaining('Everything already exists as planned') });
  });

  it('shows each difference of a part that was made otherwise, and the command that sets it', async () => {
    const { run } = createWorld('different');
    const { exitCode, stdout, stderr } = await run('setup');
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/~ queue .*:tally-bucket-events\n {4}DelaySeconds is 900\n {4}planned {2}0\n/);
    expect(stderr).toContain('tally setup --apply');
    const json = await run('setup --json');
    expect(JSON.parse(json.stdout)).toMatchObject({ parts: expect.arrayContaining([expect.objectContaining({ state: 'different' })]) });
  });
});
