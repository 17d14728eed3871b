# Tally's image: the program as one bundle with everything that it needs, and the panel.
#
#   docker build -t tally .
#   docker buildx build --platform linux/amd64,linux/arm64 -t REGISTRY/tally --push .
#   docker run --read-only --tmpfs /tmp -e TALLY_QUEUE_URL=… -e TALLY_INDEX_URL=… tally serve
#   docker exec CONTAINER tally search invoice
#
# On its own, with embedded SQS, SNS and S3 and its data in a volume:
#
#   docker run --name tally --read-only --tmpfs /tmp -v tally-data:/data -p 127.0.0.1:4566:4566 tally serve --embedded
#
# `docker stop` kills after 10 s, but Tally takes up to TALLY_SHUTDOWN_TIMEOUT_MS (25 s) to stop. Use `docker stop -t 30`, or
# `docker run --stop-timeout 30`. A killed process's messages return to the queue.

FROM node:24-slim AS build
WORKDIR /app
COPY package.json package-lock.json tsconfig.json LICENSE ./
COPY config/opensearch config/opensearch
COPY config/tooling config/tooling
COPY src src
# one RUN, so that no layer contains npm's packages
RUN npm ci --omit=dev --ignore-scripts --no-audit --no-fund --no-update-notifier --cache /tmp/npm \
 && node config/tooling/package.ts --program /package \
 && rm -rf /tmp/npm node_modules

FROM node:24-slim
LABEL org.opencontainers.image.title="tally" \
      org.opencontainers.image.description="Keeps a search index in exact agreement with object-storage buckets." \
      org.opencontainers.image.version="1.67.0" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.base.name="docker.io/library/node:24-slim"
WORKDIR /app
# Root owns these files, so the process cannot change its program.
COPY --from=build /package ./
COPY config/opensearch config/opensearch
# `node` is the base image's user 1000; a new volume at /data takes its owner from here
RUN chmod 755 dist/program/tally.js && ln -s /app/dist/program/tally.js /usr/local/bin/tally && install -d -o node -g node -m 700 /data

# Health and metrics for probes from outside. The control plane stays on the container's loopback, where `docker exec` reaches it.
ENV NODE_ENV=production \
    TALLY_HEALTH_ADDRESS=0.0.0.0:8081 \
    TALLY_EMBEDDED_ADDRESS=0.0.0.0:4566 \
    TALLY_EMBEDDED_DATA=/data
EXPOSE 8081
# by number, so that Kubernetes' runAsNonRoot can check it
USER 1000:1000
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 CMD [ "node", "-e", \
  "require('node:http').get(`http://${process.env.TALLY_HEALTH_ADDRESS || '127.0.0.1:8081'}/livez`, ({ statusCode }) => process.exit(statusCode === 200 ? 0 : 1)).on('error', () => process.exit(1))" ]
# node replaces env, so PID 1 is node and gets the signals
ENTRYPOINT ["tally"]
CMD ["serve"]
