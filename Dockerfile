# earshot in a container. Build and start: docker compose up --build --detach (see compose.yaml).

# The version of Node that runtime/package.json installs in a checkout.
FROM node:24.21.0-trixie-slim AS build
WORKDIR /build
# First the files that define the dependencies: Docker installs packages again only if these files change.
COPY package.json package-lock.json .npmrc ./
COPY runtime/ runtime/
RUN npm ci
COPY tsconfig.json tsconfig.build.json ./
COPY scripts/ scripts/
COPY src/ src/
RUN npm run build
# Removes development packages and the second Node.
RUN npm prune --omit=dev --omit=optional && rm -rf node_modules/earshot-runtime node_modules/.bin

FROM node:24.21.0-trixie-slim
WORKDIR /opt/earshot
COPY --from=build /build/package.json ./
COPY --from=build /build/scripts/earshot.js /build/scripts/fewer-messages.js /build/scripts/require-node.js scripts/
COPY --from=build /build/node_modules/ node_modules/
COPY --from=build /build/dist/ dist/
# The command `earshot`, and a user with a fixed id for the permissions of volumes and secret files.
RUN ln -s /opt/earshot/scripts/earshot.js /usr/local/bin/earshot \
  && groupadd --gid 10001 earshot \
  && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /data --shell /usr/sbin/nologin earshot \
  && install -d -m 700 -o 10001 -g 10001 /data \
  && install -d /etc/earshot

# earshot writes only to /data, also SQLite's temporary files. The root file system can be read-only.
ENV NODE_ENV=production \
  EARSHOT_DATA_DIR=/data \
  EARSHOT_LISTEN=0.0.0.0:443 \
  SQLITE_TMPDIR=/data
VOLUME /data
# Optional: earshot.config.ts in this folder.
WORKDIR /etc/earshot
USER 10001:10001
# Port 80: http-01 challenges. In a container, every user can listen on ports below 1024
# (net.ipv4.ip_unprivileged_port_start=0), so no capability is needed.
EXPOSE 80 443

HEALTHCHECK --interval=30s --timeout=10s --start-period=2m --retries=3 \
  CMD ["node", "/opt/earshot/scripts/earshot.js", "admin", "health"]
# No shell: signals reach Node directly, which exits on SIGTERM.
ENTRYPOINT ["node", "--max-semi-space-size=4", "/opt/earshot/scripts/earshot.js"]
CMD ["start"]
