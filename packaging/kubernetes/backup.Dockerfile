# SPDX-License-Identifier: Apache-2.0
# The image of the CronJob in backup.yaml: tamga with pg_dump and pg_restore of the version of the server or later.
#   docker build --build-arg TAMGA=registry.example.org/tamga:1.2.3 -t registry.example.org/tamga-backup:1.2.3 -f backup.Dockerfile .
ARG TAMGA=tamga:latest
ARG POSTGRES=postgres:17-bookworm
FROM ${TAMGA} AS tamga
FROM ${POSTGRES}
COPY --from=tamga /usr/bin/tamga /usr/bin/tamga
USER 65532:65532
ENTRYPOINT ["/usr/bin/tamga"]
