import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { itemFault, requestFault, stateFault } from '../../../src/store/opensearch/faults.ts';

describe('an item of a bulk request', () => {
  // recorded from OpenSearch 3.6, but for the security plugin's and those marked (made up)
  it.each([
    [400, 'mapper_parsing_exception', "failed to parse field [size] of type [long] in document with id 'k:a'", 'index.rejected'],
    [400, 'illegal_argument_exception', 'Document contains at least one immense term in field="etag" (whose UTF8 …', 'index.rejected'],
    [400, 'illegal_argument_exception', 'if _id is specified it must not be empty', 'index.rejected'],
    [400, 'illegal_argument_exception', 'pipeline with id [gone] does not exist', 'bucket.index-misconfigured'],
    [500, 'fail_processor_exception', 'no', 'bucket.index-misconfigured'],
    [500, 'illegal_state_exception', 'Pipeline processor configured for non-existent pipeline [gone]', 'bucket.index-misconfigured'],
    [400, 'illegal_argument_exception', 'number of documents in the index cannot exceed 2147483519', 'bucket.index-unavailable'],
    [400, 'strict_dynamic_mapping_exception', 'mapping set to strict, dynamic introduction of [zz] …', 'bucket.index-misconfigured'],
    [
      404,
      'index_not_found_exception',
      'no such index [t-write-a] and [require_alias] request flag is [true] and …',
      'bucket.index-missing',
    ],
    [400, 'index_closed_exception', 'closed', 'bucket.index-blocked'],
    [403, 'cluster_block_exception', 'index [t-d] blocked by: [FORBIDDEN/8/index write (api)];', 'bucket.index-blocked'],
    [403, 'cluster_block_exception', 'index [t-d] blocked by: [FORBIDDEN/6/cluster read-only (api)];', 'index.blocked'],
    [
      429,
      'cluster_block_exception',
      'index [t-d] blocked by: [TOO_MANY_REQUESTS/12/disk usage exceeded flood-stage watermark, index has read-only-allow-delete block];',
      'bucket.index-blocked',
    ],
    [503, 'cluster_block_exception', 'index [t-d] blocked by: [SERVICE_UNAVAILABLE/4/index opened recently];', 'bucket.index-unavailable'],
    [503, 'cluster_block_exception', 'blocked by: [SERVICE_UNAVAILABLE/2/no cluster-manager];', 'index.unreachable'],
    [429, 'rejected_execution_exception', 'rejected execution of org.opensearch.action.support.…', 'bucket.index-overloaded'],
    [429, 'circuit_breaking_exception', '[parent] Data too large', 'bucket.index-overloaded'],
    [429, 'something_new_exception', 'slow down (made up)', 'bucket.index-overloaded'],
    [503, 'unavailable_shards_exception', '[t-f][0] primary shard is not active Timeout: [5s]', 'bucket.index-unavailable'],
    [500, 'translog_exception', 'no space left on device (made up)', 'bucket.index-unavailable'],
    [403, 'security_exception', 'no permissions for [indices:data/write/bulk[s]] and User […]', 'bucket.index-denied'],
    [400, 'something_new_exception', 'unheard of (made up)', 'bucket.index-misconfigured'],
  ])('refused with %i %s (%s) is %s', (status, type, reason, code) => {
    const fault = itemFault(status, { type, reason });
    expect(fault.code).toBe(code);
    expect(fault.reason).toContain(type);
    expect(fault.reason).toContain(reason.slice(0, 40));
  });

  it('is never about all indices unless the whole cluster is blocked, and about its document only if that is known', () => {
    const types = [
      'cluster_block_exception',
      'illegal_argument_exception',
      'security_exception',
      'mapper_parsing_exception',
      'fail_processor_exception',
    ];
    const type = fc.oneof(fc.constantFrom(...types), fc.string());
    fc.assert(
      fc.property(fc.integer({ min: 300, max: 599 }), type, fc.string(), (status, errorType, reason) => {
        const { code } = itemFault(status, { type: errorType, reason });
        if (errorType === 'cluster_block_exception') return;
        if (errorType === 'mapper_parsing_exception') expect(code).toBe('index.rejected');
        else expect(code).toMatch(/^bucket\.index-/);
      }),
    );
  });

  it('keeps a reason short, whatever the document that it quotes', () => {
    expect(itemFault(400, { type: 'mapper_parsing_exception', reason: 'x'.repeat(100_000) }).reason.length).toBeLessThanOrEqual(500);
  });
});

describe('a whole request', () => {
  const json = (type: string, reason: string) => ({ error: { root_cause: [{ type, reason }], type, reason }, status: 0 });

  it.each([
    [403, json('cluster_block_exception', 'blocked by: [FORBIDDEN/13/cluster read-only / allow delete (api)];'), 'index.blocked'],
    [
      403,
      json('index_create_block_exception', 'blocked by: [FORBIDDEN/10/cluster create-index blocked (api)];'),
      'bucket.index-unavailable',
    ],
    [503, json('cluster_block_exception', 'blocked by: [SERVICE_UNAVAILABLE/1/state not recovered / initialized];'), 'index.unreachable'],
    [
      429,
      json('rejected_execution_exception', 'rejected execution of coordinating operation [coordinating_and_primary_bytes=0, …'),
      'index.overloaded',
    ],
    [429, '', 'index.overloaded'],
    [401, 'Unauthorized', 'index.denied'],
    [403, json('security_exception', 'no permissions for [indices:data/write/bulk]'), 'index.denied'],
    [403, { Message: 'User: anonymous is not authorized to perform: es:ESHttpPost' }, 'index.denied'],
    [502, '<html>Bad Gateway</html>', 'index.unreachable'],
    [503, json('process_cluster_event_timeout_exception', 'failed to process cluster event'), 'index.unreachable'],
    [404, '<html>no OpenSearch here</html>', 'index.unreachable'],
    [404, json('index_not_found_exception', 'no such index [t-state]'), 'bucket.index-missing'],
    [
      400,
      json(
        'validation_exception',
        'Validation Failed: 1: this action would add [2] total shards, but this cluster currently has [1000]/[1000] …',
      ),
      'bucket.index-limit',
    ],
    [400, json('parsing_exception', 'unknown query [made up]'), 'internal.unexpected'],
  ])('refused with %i %j is %s', (status, body, code) => {
    expect(requestFault({ status, body })).toMatchObject({ code });
  });

  it.each([
    [403, json('security_exception', 'no permissions for [indices:data/read/search]'), 'bucket.index-denied'],
    [429, json('rejected_execution_exception', 'rejected execution of …'), 'bucket.index-overloaded'],
    [503, json('search_phase_execution_exception', ''), 'bucket.index-unavailable'],
    [503, json('cluster_block_exception', 'blocked by: [SERVICE_UNAVAILABLE/2/no cluster-manager];'), 'index.unreachable'],
    [401, 'Unauthorized', 'index.denied'],
    [401, json('security_exception', 'who is it (made up)'), 'index.denied'],
    [403, { Message: 'User: anonymous is not authorized to perform: es:ESHttpPost' }, 'index.denied'],
    [429, '', 'index.overloaded'],
    [503, '', 'index.unreachable'],
  ])('about one index, refused with %i %j, is %s', (status, body, code) => {
    expect(requestFault({ status, body }, 'index')).toMatchObject({ code });
  });

  it('tells the cause where the reason is empty, as for missing shards', () => {
    const body = {
      error: {
        type: 'search_phase_execution_exception',
        reason: '',
        caused_by: { reason: 'Search rejected due to missing shards [[t][0]].' },
      },
    };
    expect(requestFault({ status: 503, body })).toMatchObject({
      code: 'bucket.index-unavailable',
      reason: '503 search_phase_execution_exception: Search rejected due to missing shards [[t][0]].',
    });
  });
});

describe('the same on the state index', () => {
  it.each([
    ['bucket.index-missing', 'index.state-missing'],
    ['bucket.index-blocked', 'index.blocked'],
    ['index.rejected', 'internal.unexpected'],
    ['index.overloaded', 'index.overloaded'],
  ] as const)('%s is %s', (code, shared) => {
    expect(stateFault({ code, reason: 'r' })).toMatchObject({ code: shared, reason: 'r' });
  });
});
