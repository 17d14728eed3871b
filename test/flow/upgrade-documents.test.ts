/** An index that the version before made, under the daemons of this version. */
import { expect, test } from 'vitest';
import { until } from '../support/servers/aws.ts';
import { makeEarlier } from '../support/worlds/earlier-version.ts';
import { indexKinds, openFlow } from '../support/worlds/flow.ts';

interface Page {
  readonly items: readonly { readonly key?: string; readonly name?: string; readonly objects?: number }[];
}

/** What reads the search fields of this version, and all of what it finds. */
const NEW_REQUESTS = [
  ['/v1/objects?contains=PHONE', ['2026/a/iPhone 1.tar.gz', '2026/a/iPhone 2.tar.gz', '2026/b/iPhone 3.tar.gz']],
  ['/v1/objects?match=*iphone*.gz', ['2026/a/iPhone 1.tar.gz', '2026/a/iPhone 2.tar.gz', '2026/b/iPhone 3.tar.gz']],
  ['/v1/objects?extension=tar.gz', ['2026/a/iPhone 1.tar.gz', '2026/a/iPhone 2.tar.gz', '2026/b/iPhone 3.tar.gz']],
  ['/v1/usage?prefix=2026/', ['2026/a/', '2026/b/']],
] as const;

test.each(indexKinds)('documents of the version before are upgraded, and nothing is answered in part meanwhile: %s', async (kind) => {
  await using flow = await openFlow(kind);
  const { world } = flow;
  const keys = [...NEW_REQUESTS[0][1], 'plain.txt'];
  const before = await flow.start();
  for (const key of keys) world.send(world.put(key));
  world.send(world.put('gone'), world.remove('gone'));
  await flow.converged(before);
  expect(await before.stop()).toEqual({ code: 0, signal: null });
  await makeEarlier(kind, flow.env, world.bucket);

  // without the role reindex nothing is upgraded
  let daemon = await flow.start({ TALLY_ROLES: 'http' });
  const at = (path: string) => daemon.request('GET', `${path}${path.includes('?') ? '&' : '?'}bucket=${world.bucket}`);
  for (const [path] of NEW_REQUESTS) {
    const { status, body } = await at(path);
    expect({ path, status }).toEqual({ path, status: 503 });
    expect(body).toMatchObject({
      code: 'index.upgrading',
      bucket: world.bucket,
      documents_left: keys.length + 1,
      documents: keys.length + 1,
    });
  }
  // what the documents of before have is found
  expect(((await at('/v1/objects?extension=gz')).body as Page).items).toHaveLength(3);
  expect(((await at('/v1/objects?q=earlier')).body as Page).items).toHaveLength(keys.length);

  expect(await daemon.stop()).toEqual({ code: 0, signal: null });
  daemon = await flow.start();
  for (const [path, wanted] of NEW_REQUESTS) {
    await until(`${path} is answered`, async () => {
      const { status, body } = await at(path);
      if (status !== 200) {
        expect({ status, body }).toMatchObject({ status: 503, body: { code: 'index.upgrading' } });
        return false;
      }
      // the first answer is whole
      expect((body as Page).items.map(({ key, name }) => key ?? name)).toEqual(wanted);
      return true;
    });
  }
  expect(((await at('/v1/objects?q=iphone')).body as Page).items).toHaveLength(3);
  expect(((await at('/v1/objects?q=earlier')).body as Page).items).toEqual([]);
  await flow.converged(daemon);
});
