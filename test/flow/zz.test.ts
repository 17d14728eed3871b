import { test } from 'vitest';
import { setTimeout as delay } from 'node:timers/promises';
import { openFlow } from '../support/flow.ts';
import { badBodies } from './bad-input.test.ts';
test('x', async () => {
    await using flow = await openFlow('sqlite');
    const daemon = await flow.start({ TALLY_LOG_LEVEL: 'debug' });
    for (const [, body] of badBodies(flow.world.bucket)) flow.world.send(body);
    await delay(12000);
    console.log(flow.world.messages().inFlight.map((m)=>[m.approximateReceiveCount, m.body.slice(0,300)]), daemon.logged('record not indexed'), daemon.logged('request failed'));
}, 60000);
