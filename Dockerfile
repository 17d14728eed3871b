# The image of Tally: production dependencies and sources, run as they are (Node strips the types), and the built panel.
#
#   docker build -t tally .
#   docker run --read-only --tmpfs /tmp -e TALLY_QUEUE_URL=… -e TALLY_INDEX_URL=… tally serve
#   docker exec CONTAINER tally search invoice
#
# Without anything else, with embedded SQS, SNS and S3 and its data in a volume:
#
#   docker run --name tally --read-only --tmpfs /tmp -v tally-data:/data -p 127.0.0.1:4566:4566 tally serve --embedded
#
# `docker stop` kills after 10 s, while Tally stops within TALLY_SHUTDOWN_TIMEOUT_MS (25 s; at once when idle). Use
# `docker stop -t 30`, or `docker run --stop-timeout 30`. What a killed process held comes back to the queue.

# One installation serves both, the panel's builder (a dependency for development) and the program: a second one would take as
# long as all other steps together. One RUN, so that no layer contains the packages which are removed at its end.
FROM node:24-slim AS build
WORKDIR /app
COPY package.json package-lock.json tsconfig.json ./
COPY src src
# optional: a TypeScript compiler that a library of ours could use. Types and source maps: a third of the rest
RUN npm ci --ignore-scripts --no-audit --no-fund --no-update-notifier --cache /tmp/npm \
 && node src/panel/build.ts \
 && npm prune --omit=dev --omit=optional --ignore-scripts --no-audit --no-fund --no-update-notifier --cache /tmp/npm \
 && rm -rf /tmp/npm \
 && find node_modules -type f \( -name '*.d.ts' -o -name '*.d.mts' -o -name '*.d.cts' -o -name '*.map' \) -delete

FROM node:24-slim
LABEL org.opencontainers.image.title="tally" \
      org.opencontainers.image.description="Keeps a search index in exact agreement with object-storage buckets." \
      org.opencontainers.image.version="1.67.0" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.base.name="docker.io/library/node:24-slim"
WORKDIR /app
# These files belong to root, so the process cannot change its program.
COPY --from=build /app/node_modules node_modules
COPY package.json LICENSE ./
COPY config/opensearch config/opensearch
COPY src src
COPY --from=build /app/dist/panel dist/panel
# `node` is user 1000 of the base image; a new volume at /data takes its owner from here
RUN chmod 755 src/tally.js && ln -s /app/src/tally.js /usr/local/bin/tally && install -d -o node -g node -m 700 /data

# Health and metrics for probes from outside. The control plane stays on the container's loopback, where `docker exec` is.
ENV NODE_ENV=production \
    TALLY_HEALTH_ADDRESS=0.0.0.0:8081 \
    TALLY_EMBEDDED_ADDRESS=0.0.0.0:4566 \
    TALLY_EMBEDDED_DATA=/data
EXPOSE 8081
# by number, so that Kubernetes' runAsNonRoot can tell
USER 1000:1000
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 CMD [ "node", "-e", \
  "require('node:http').get(`http://${process.env.TALLY_HEALTH_ADDRESS || '127.0.0.1:8081'}/livez`, ({ statusCode }) => process.exit(statusCode === 200 ? 0 : 1)).on('error', () => process.exit(1))" ]
# env, then node, replace each other: PID 1 is node and gets the signals
ENTRYPOINT ["tally"]
CMD ["serve"]
