# The gate as an image: `vhlo check` on the folder that is mounted at /work. docs/ci.md says how it is used.
#
#     docker build --tag vhlo-tools .
#     docker run --rm --volume "$PWD:/work:ro" vhlo-tools check exports/ --target jaxlib==0.4.31
ARG BASE=python:3.13-slim-bookworm

FROM ${BASE} AS build
WORKDIR /source
COPY . .
# An environment of its own is all that the second stage takes; what pip, build and cache leave stays here.
RUN python -m venv /opt/vhlo-tools \
    && /opt/vhlo-tools/bin/python -m pip install --no-cache-dir --disable-pip-version-check . \
    && /opt/vhlo-tools/bin/python -m pip uninstall --yes --quiet pip

FROM ${BASE}
LABEL org.opencontainers.image.title="vhlo-tools" \
    org.opencontainers.image.description="A gate for StableHLO programs: vhlo check" \
    org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/vhlo-tools /opt/vhlo-tools
# The programs are somebody else's: nobody here is root, or may write what is installed.
RUN mkdir /home/vhlo && chown 10001:10001 /home/vhlo
ENV PATH=/opt/vhlo-tools/bin:${PATH} \
    HOME=/home/vhlo \
    PYTHONDONTWRITEBYTECODE=1
USER 10001:10001
WORKDIR /work
ENTRYPOINT ["vhlo"]
CMD ["check"]
