# earshot in a container. Build and start: docker compose up --build --detach (see compose.yaml).

# The same Node as runtime/package.json brings along for a checkout.
FROM node:24.21.0-trixie-slim AS build
WORKDIR /build
# What dependencies come from, before the sources: they are fetched again only when these change.
COPY package.json package-lock.json .npmrc ./
COPY runtime/ runtime/
RUN npm ci
COPY tsconfig.json tsconfig.build.json ./
COPY scripts/ scripts/
COPY src/ src/
RUN npm run build
# What runs is left: no compiler, and no second Node beside that of the image.
RUN npm prune --omit=dev --omit=optional && rm -rf node_modules/earshot-runtime node_modules/.bin

FROM node:24.21.0-trixie-slim
WORKDIR /opt/earshot
COPY --from=build /build/package.json ./
COPY --from=build /build/scripts/earshot.js /build/scripts/require-node.js scripts/
COPY --from=build /build/node_modules/ node_modules/
COPY --from=build /build/dist/ dist/
# `docker compose exec earshot earshot doctor`, and a user whose number stays the same, for the rights
# of volumes and secret files.
RUN ln -s /opt/earshot/scripts/earshot.js /usr/local/bin/earshot \
  && groupadd --gid 10001 earshot \
  && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /data --shell /usr/sbin/nologin earshot \
  && install -d -m 700 -o 10001 -g 10001 /data \
  && install -d /etc/earshot

# Nothing is written outside /data: the root may be read-only. SQLite's temporary files go there, too.
ENV NODE_ENV=production \
  EARSHOT_DATA_DIR=/data \
  EARSHOT_LISTEN=0.0.0.0:443 \
  SQLITE_TMPDIR=/data
VOLUME /data
# earshot.config.ts is looked for here, where there is one.
WORKDIR /etc/earshot
USER 10001:10001
# 80 is for http-01 challenges. Docker lets everybody in a container listen on ports below 1024
# (net.ipv4.ip_unprivileged_port_start=0), so no capability is needed.
EXPOSE 80 443

HEALTHCHECK --interval=30s --timeout=10s --start-period=2m --retries=3 \
  CMD ["node", "/opt/earshot/scripts/earshot.js", "health"]
# Without a shell in between: signals reach Node, which ends by itself on SIGTERM.
ENTRYPOINT ["node", "--max-semi-space-size=16", "/opt/earshot/scripts/earshot.js"]
CMD ["start"]
