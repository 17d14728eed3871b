/** The panel: the page on which people administer buckets and search objects. It calls the operations of this contract. */
import { z } from 'zod';
import { must } from './fields.ts';
import type { Row, RowKey } from './row.ts';

/** Longer than any name of a built file. */
const FILE_LENGTH_MAX = 100;

export const panelRows = {
  'GET /': {
    operation: 'openPanel',
    summary: 'Redirects to the panel.',
    description: "The control plane's bare address leads people to the panel.",
    scope: 'none',
    status: 302,
  },
  'GET /panel': {
    operation: 'findPanel',
    summary: 'Redirects to the panel.',
    scope: 'none',
    status: 302,
  },
  'GET /panel/': {
    operation: 'getPanel',
    summary: "Returns the panel's page.",
    description:
      'The page itself contains nothing that needs a login: it reads everything it shows through this API, as the person who uses it.',
    scope: 'none',
    answer: z.string().describe('A page.'),
    media: 'text/html',
    errors: ['panel.not-built'],
  },
  'GET /panel/{file}': {
    operation: 'getPanelFile',
    summary: "Returns the panel's script or style sheet.",
    description: 'The name contains a hash of the content, so browsers cache it.',
    scope: 'none',
    params: z.object({
      file: z
        .string(must('must be the name of a file'))
        .regex(/^[A-Za-z0-9.-]+$/, 'must be the name of a file')
        .max(FILE_LENGTH_MAX, 'must be the name of a file')
        .describe('The name, as given in the page.'),
    }),
    answer: z.string().describe('A script or a style sheet.'),
    media: 'text/javascript',
    errors: ['request.not-found', 'panel.not-built'],
    example: { params: { file: 'panel-QSV32F7P.js' } },
  },
} as const satisfies Record<RowKey, Row>;
