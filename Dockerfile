# Two stages: what builds stays behind. PIP_INDEX_URL says where wheels come from, if not from the usual place.
# PYTHON_DIGEST (sha256:...) has no default: whoever builds pins the base image, and an old digest lacks security fixes.
ARG PYTHON_DIGEST
FROM python:3.11-slim@${PYTHON_DIGEST} AS build
ARG PIP_INDEX_URL
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 SOURCE_DATE_EPOCH=0
WORKDIR /src
RUN python -m venv /app
# Hashes first: what is not in the lock is refused, and a change of our code does not fetch anything again.
COPY requirements/run.lock requirements/
RUN /app/bin/pip install --require-hashes --only-binary=:all: -r requirements/run.lock
COPY requirements/build.lock requirements/
RUN python -m venv /build && /build/bin/pip install --require-hashes -r requirements/build.lock
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN /build/bin/pip wheel --no-deps --no-build-isolation --wheel-dir /wheels . \
    && /app/bin/pip install --no-deps --no-index /wheels/*.whl \
    && /app/bin/pip uninstall -y -q pip setuptools
# Nothing can be written when the image runs, so bytecode is made here. Its hash is not checked: no time is in it, and no source is read.
RUN PYTHONHASHSEED=0 /app/bin/python -m compileall -q -f --invalidation-mode unchecked-hash /app/lib

FROM python:3.11-slim@${PYTHON_DIGEST}
ARG PYTHON_DIGEST
LABEL org.opencontainers.image.base.name=docker.io/library/python:3.11-slim org.opencontainers.image.base.digest=${PYTHON_DIGEST}
ENV PATH=/app/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
# The base image has no bytecode of Python's own modules. Tests of Python have modules that do not compile on purpose.
RUN PYTHONHASHSEED=0 python -m compileall -q -f --invalidation-mode unchecked-hash -x '/(test|tests|lib2to3|site-packages)/' /usr/local/lib/python3.11
COPY --from=build /app /app
# The number is the one that the chart runs as; it needs no name and owns no file.
USER 65532:65532
WORKDIR /tmp
ENTRYPOINT ["trimtab"]
CMD ["run"]
