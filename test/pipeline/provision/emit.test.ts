import { describe, expect, it } from 'vitest';
import { RequestError } from '../../../src/domain/request-error.ts';
import { startWorld } from './world.ts';

describe('a plan as a template', () => {
  it.each(['cloudformation', 'terraform'] as const)(
    'is refused as %s for notification, with the reason and what to take instead',
    async (format) => {
      const { provisioning } = await startWorld();
      await expect(provisioning.emit({ bucket: 'photos' }, format)).rejects.toMatchObject({
        code: 'connect.no-template',
        message: expect.stringMatching(
          new RegExp(
            `would own it and overwrite .*\`tally bucket emit photos --format aws-cli\`.*--source eventbridge --format ${format}\``,
          ),
        ),
      });
    },
  );

  it('is written for the other sources, and writes nothing to AWS', async () => {
    const { aws, provisioning } = await startWorld();
    const before = structuredClone(aws.parts);
    for (const source of ['eventbridge', 'routed'] as const) {
      expect(await provisioning.emit({ bucket: 'photos', source }, 'cloudformation')).toContain('AWSTemplateFormatVersion: "2010-09-09"');
      expect(await provisioning.emit({ bucket: 'photos', source }, 'terraform')).toContain('resource "aws_cloudwatch_event_rule"');
    }
    expect(aws.parts).toEqual(before);
  });

  it('needs what is in the policies that it owns as a whole, where the script reads by itself', async () => {
    const { aws, provisioning } = await startWorld();
    aws.before = (call) => {
      if (call === 'queueOf') throw new RequestError('connect.denied', 'sqs:GetQueueAttributes is missing');
    };
    const request = { bucket: 'photos', source: 'eventbridge' } as const;
    await expect(provisioning.emit(request, 'terraform')).rejects.toMatchObject({ code: 'connect.denied' });
    expect(await provisioning.emit(request, 'aws-cli')).toContain('#!/usr/bin/env bash');
  });
});
