import { describe, expect, it } from 'vitest';
import { errorBody, foreign, scriptedS3, target } from './scripted-s3.ts';

describe('lifecycle rules as S3 answers them', () => {
  it.each([
    ['<Filter><Prefix>logs/ü </Prefix></Filter><Expiration><Days>30</Days></Expiration>', { prefix: 'logs/ü ', expiresAfterDays: 30 }],
    // the old form
    ['<Prefix>logs/</Prefix><Expiration><Days>10</Days></Expiration>', { prefix: 'logs/', expiresAfterDays: 10 }],
    [
      '<Filter><Tag><Key>class</Key><Value>tmp</Value></Tag></Filter><Expiration><Date>2030-01-01T00:00:00Z</Date></Expiration>',
      { tags: { class: 'tmp' }, expiresAtMs: Date.UTC(2030, 0, 1) },
    ],
    [
      `<Filter><And><Prefix>a/</Prefix><Tag><Key>x</Key><Value>1</Value></Tag><Tag><Key>y</Key><Value/></Tag>
        <ObjectSizeGreaterThan>500</ObjectSizeGreaterThan><ObjectSizeLessThan>64000</ObjectSizeLessThan></And></Filter>`,
      { prefix: 'a/', tags: { x: '1', y: '' }, sizeAbove: 500, sizeBelow: 64_000 },
    ],
    ['<Filter><ObjectSizeGreaterThan>1024</ObjectSizeGreaterThan></Filter>', { sizeAbove: 1_024 }],
    // of old versions, delete markers and uploads
    ['<Filter/><NoncurrentVersionExpiration><NoncurrentDays>3</NoncurrentDays></NoncurrentVersionExpiration>', {}],
    ['<Filter/><Expiration><ExpiredObjectDeleteMarker>true</ExpiredObjectDeleteMarker></Expiration>', {}],
  ])('are understood: %s', async (fields, told) => {
    const rule = (id: string, status: string) => `<Rule><ID>${id}</ID><Status>${status}</Status>${fields}</Rule>`;
    const body = `<LifecycleConfiguration>${rule('on', 'Enabled')}${rule('off', 'Disabled')}</LifecycleConfiguration>`;
    const { lifecycle } = await scriptedS3(() => ({ body }));
    const read = { prefix: '', tags: {}, ...told };
    expect(await lifecycle.rulesOf(target)).toEqual([
      { id: 'on', isEnabled: true, ...read },
      { id: 'off', isEnabled: false, ...read },
    ]);
  });

  it('are none where there is no configuration', async () => {
    const { lifecycle } = await scriptedS3(() => ({ status: 404, body: errorBody('NoSuchLifecycleConfiguration') }));
    expect(await lifecycle.rulesOf(target)).toEqual([]);
  });

  it('have the unfinished uploads beside them: how many, and since when', async () => {
    const upload = (at: string): string => `<Upload><Key>k</Key><UploadId>${at}</UploadId><Initiated>${at}</Initiated></Upload>`;
    const list = (more: boolean, ...times: readonly string[]): string =>
      `<ListMultipartUploadsResult><IsTruncated>${more}</IsTruncated>${times.map(upload).join('')}</ListMultipartUploadsResult>`;
    const bodies = [list(true, '2026-03-02T00:00:00Z', '2026-03-01T00:00:00Z'), list(false)];
    const { lifecycle, asked } = await scriptedS3(() => ({ body: bodies.shift() ?? '' }));
    expect(await lifecycle.uploadsOf(target)).toEqual({ count: 2, is_more: true, oldest_at: '2026-03-01T00:00:00.000Z' });
    expect(await lifecycle.uploadsOf(target)).toBeUndefined();
    expect(asked).toHaveLength(2);
  });

  it.each([
    ['lifecycle.denied', { status: 403, body: errorBody('AccessDenied') }],
    ['s3.throttled', { status: 503, body: errorBody('SlowDown') }],
    ['object.failed', { headers: foreign, body: '<html/>' }],
  ])('are %s', async (code, answer) => {
    const { lifecycle } = await scriptedS3(() => answer);
    await expect(lifecycle.rulesOf(target)).rejects.toMatchObject({ code });
  });
});
