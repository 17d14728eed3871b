/** The listing server as a process of its own: `fork` it, and it sends its URL; it ends with its parent. */
import { startListingServer } from './listing-server.ts';

const server = await startListingServer();
process.once('disconnect', () => void server.close());
process.send?.({ url: server.url });
