# Stage one: the locked dependencies and the project's wheel, in an environment of their own.
FROM python:3.13-slim AS build

ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore

WORKDIR /src

# /opt/venv goes into the image and holds no pip; /opt/build stays behind.
RUN python -m venv /opt/build && python -m venv --without-pip /opt/venv

COPY requirements.lock requirements-build.lock ./
RUN /opt/build/bin/pip install --only-binary :all: --require-hashes -r requirements-build.lock
RUN /opt/build/bin/pip --python /opt/venv/bin/python install \
    --only-binary :all: --require-hashes -r requirements.lock

COPY pyproject.toml README.md LICENSE policies.yaml policies.schema.json policies.test.yaml ./
COPY gateway ./gateway
COPY adapters ./adapters
RUN /opt/build/bin/pip wheel --no-deps --no-build-isolation --wheel-dir /opt/wheels .
RUN /opt/build/bin/pip --python /opt/venv/bin/python install --no-deps /opt/wheels/*.whl

# Stage two: that environment, and a user who owns nothing but the state.
FROM python:3.13-slim

RUN groupadd --gid 10001 gateway \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /state gateway \
    && install --directory --owner gateway --group gateway --mode 0700 /state

# Access files are read by mdbtools, which is not in the image: --build-arg PROGRAMS=mdbtools
ARG PROGRAMS=""
RUN if [ -n "$PROGRAMS" ]; then \
        apt-get update && apt-get install --yes --no-install-recommends $PROGRAMS \
        && rm -rf /var/lib/apt/lists/*; \
    fi

# What the drivers of Firebird and of ODBC load; ODBC drivers themselves belong into images of yours.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends libfbclient2 libodbc2 odbcinst \
    && rm -rf /var/lib/apt/lists/*

COPY --from=build /opt/venv /opt/venv

ENV PATH=/opt/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 GATEWAY_STATE=/state

USER 10001:10001
WORKDIR /state
VOLUME /state
EXPOSE 8080
STOPSIGNAL SIGTERM

HEALTHCHECK --interval=10s --timeout=3s --start-period=20s --retries=3 \
    CMD ["python", "-c", "import http.client as h; c = h.HTTPConnection('127.0.0.1', 8081, timeout=2); c.request('GET', '/healthz'); raise SystemExit(c.getresponse().status != 200)"]

ENTRYPOINT ["clinic-gateway"]
CMD ["serve", "--config", "/etc/clinic-gateway/gateway.yaml"]
