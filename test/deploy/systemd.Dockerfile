# A machine with systemd and Node.js, on which docs/guides/systemd.md is followed. It needs nothing of its build context.
FROM node:24-slim
RUN apt-get update -qq \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends systemd >/dev/null \
 && rm -rf /var/lib/apt/lists/* \
 && ln -s /usr/local/bin/node /usr/bin/node
STOPSIGNAL SIGRTMIN+3
ENV container=docker
# a container sees its control groups read-only, and its mounts are private, unless it says otherwise; systemd mounts a
# unit's credentials in a namespace of its own and needs that mount to be seen outside, as it is on a real host
ENTRYPOINT ["sh", "-c", "mount -o remount,rw /sys/fs/cgroup; mount --make-rshared /; exec /lib/systemd/systemd"]
