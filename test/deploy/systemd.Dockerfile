# A machine with systemd, Node.js and Tally where config/systemd/tally.service expects them. Build context: config/systemd.
ARG IMAGE
FROM ${IMAGE}
USER root
RUN apt-get update -qq \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends systemd >/dev/null \
 && rm -rf /var/lib/apt/lists/* \
 && cp -r /app /opt/tally \
 && ln -s /usr/local/bin/node /usr/bin/node
COPY tally.service /etc/systemd/system/
COPY tally.env /etc/tally/
HEALTHCHECK NONE
STOPSIGNAL SIGRTMIN+3
ENV container=docker
# a container sees its control groups read-only, and its mounts are private, unless it says otherwise; systemd mounts a
# unit's credentials in a namespace of its own and needs that mount to be seen outside, as it is on a real host
ENTRYPOINT ["sh", "-c", "mount -o remount,rw /sys/fs/cgroup; mount --make-rshared /; exec /lib/systemd/systemd"]
