FROM python:3.13-slim-bookworm AS build
RUN python -m venv /opt/advisor
ENV PATH=/opt/advisor/bin:$PATH \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1
WORKDIR /src
# The locked packages first: they change less often than the code.
COPY requirements-image.lock ./
RUN pip install --require-hashes -r requirements-image.lock
COPY pyproject.toml README.md ./
COPY advisor advisor
COPY migrations migrations
RUN pip install --no-index --no-deps --no-build-isolation .

FROM python:3.13-slim-bookworm
RUN useradd --system --uid 10001 --no-create-home advisor \
    && install --directory --owner advisor /var/lib/advisor
COPY --from=build /opt/advisor /opt/advisor
ENV PATH=/opt/advisor/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    ADVISOR_HOST=0.0.0.0 \
    ADVISOR_PORT=8000 \
    ADVISOR_DATA_DIR=/var/lib/advisor
# By number, so that an orchestrator can see it is not root.
USER 10001
WORKDIR /var/lib/advisor
EXPOSE 8000
# http.client goes straight to the service, past any proxy the environment names.
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s --retries=3 \
    CMD ["python", "-c", "import http.client, os, sys; c = http.client.HTTPConnection('127.0.0.1', int(os.environ['ADVISOR_PORT']), timeout=2); c.request('GET', '/healthz'); sys.exit(c.getresponse().status != 200)"]
CMD ["gunicorn", "--config", "python:advisor.gunicorn_conf"]
