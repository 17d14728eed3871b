import { auditContract } from '../../contracts/audit-contract.ts';
import { enrichmentContract } from '../../contracts/enrichment-contract.ts';
import { feedContract } from '../../contracts/feed-contract.ts';
import { maintenanceContract } from '../../contracts/maintenance-contract.ts';
import { scanContract } from '../../contracts/scan-contract.ts';
import { searchContract } from '../../contracts/search-contract.ts';
import { usageContract } from '../../contracts/usage-contract.ts';
import { withinContract } from '../../contracts/within-contract.ts';
import { storeContract } from '../../contracts/store-contract.ts';
import { openSqliteStore } from '../../contracts/sqlite.ts';
import type { Breadth } from '../../contracts/world.ts';
import { isLong } from '../../support/breadth.ts';

const whole = (runs: number): Breadth => ({ runs, isWhole: true });

storeContract('SQLite', openSqliteStore);
auditContract('SQLite', openSqliteStore);
scanContract('SQLite', openSqliteStore, whole(150));
searchContract('SQLite', openSqliteStore, whole(isLong ? 2_000 : 150));
usageContract('SQLite', openSqliteStore);
maintenanceContract('SQLite', openSqliteStore, whole(40));
feedContract('SQLite', openSqliteStore);
enrichmentContract('SQLite', { open: openSqliteStore, takesAnyLength: true });
withinContract('SQLite', openSqliteStore, whole(100));
