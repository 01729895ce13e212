"""What each rule of rules.yaml must find (ruleid) and let be (ok); nobody imports or runs this."""

import json
import pickle
import random
import secrets
import traceback
from hmac import compare_digest

import aiocache
import aiohttp
import sqlalchemy
import yaml
from sqlalchemy import text


def read_yaml(content, scan):
    # ruleid: yaml-only-by-our-reader
    yaml.load(content, Loader=yaml.SafeLoader)
    # ruleid: yaml-only-by-our-reader
    yaml.safe_load(content)
    # ruleid: yaml-only-by-our-reader
    loader = yaml.CSafeLoader
    # ok: yaml-only-by-our-reader
    yield from yaml.scan(content, Loader=yaml.SafeLoader)


def ask(connection, name, table):
    # ruleid: sql-is-never-put-together-as-text
    connection.execute(f"SELECT 1 FROM owners WHERE name = '{name}'")
    # ruleid: sql-is-never-put-together-as-text
    connection.execute("SELECT 1 FROM owners WHERE name = '%s'" % name)
    # ruleid: sql-is-never-put-together-as-text
    connection.execute("SELECT 1 FROM owners WHERE name = '" + name + "'")
    # ruleid: sql-is-never-put-together-as-text
    connection.exec_driver_sql("SELECT 1 FROM {}".format(name))
    # ruleid: sql-is-never-put-together-as-text
    text(f"name = '{name}'")
    # ruleid: sql-is-never-put-together-as-text
    sqlalchemy.text(" ".join(["name =", name]))
    # ok: sql-is-never-put-together-as-text
    connection.execute(text("SELECT 1 FROM owners WHERE name = :name"), {"name": name})
    # ok: sql-is-never-put-together-as-text
    connection.execute(table.select().where(table.c.name == name))


def check(given, stored, table):
    # ruleid: digests-are-compared-in-constant-time
    wrong = given.digest() != stored
    # ruleid: digests-are-compared-in-constant-time
    right = stored.secret == given
    # ruleid: digests-are-compared-in-constant-time
    right = given == stored.hexdigest()
    # ok: digests-are-compared-in-constant-time
    right = compare_digest(given.digest(), stored)
    # ok: digests-are-compared-in-constant-time
    return wrong, right, table.c.digest == given


async def read(request, response):
    # ruleid: bodies-are-read-to-a-bound
    await request.json()
    # ruleid: bodies-are-read-to-a-bound
    await response.json(content_type=None)
    # ruleid: bodies-are-read-to-a-bound
    await response.text()
    # ruleid: bodies-are-read-to-a-bound
    await response.read()
    # ok: bodies-are-read-to-a-bound
    return await response.content.readany()


def decoded(body, orjson):
    # ruleid: json-from-outside-is-read-strictly
    json.loads(body)
    # ok: json-from-outside-is-read-strictly
    return orjson.loads(body)


async def fetch(self, session, url):
    # ruleid: calls-of-a-backend-follow-no-redirect
    await session.get(url)
    # ruleid: calls-of-a-backend-follow-no-redirect
    await self._session.request("GET", url, allow_redirects=True)
    # ok: calls-of-a-backend-follow-no-redirect
    await session.get(url, allow_redirects=False)


def open_session(connector):
    # ruleid: sessions-keep-no-cookies-and-no-proxies
    aiohttp.ClientSession()
    # ruleid: sessions-keep-no-cookies-and-no-proxies
    aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.CookieJar(), trust_env=False)
    # ruleid: sessions-keep-no-cookies-and-no-proxies
    aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar(), trust_env=True)
    # ok: sessions-keep-no-cookies-and-no-proxies
    return aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar(), trust_env=False)


def link(request, settings):
    # ruleid: nothing-is-taken-from-the-host-header
    there = request.url
    # ruleid: nothing-is-taken-from-the-host-header
    there = f"https://{request.host}/"
    # ok: nothing-is-taken-from-the-host-header
    return there, settings.public_url


def secret_of(request, headers, X_API_KEY):
    # ruleid: a-key-is-read-with-all-its-headers
    one = request.headers.get("X-API-Key")
    # ruleid: a-key-is-read-with-all-its-headers
    one = headers[X_API_KEY]
    # ok: a-key-is-read-with-all-its-headers
    return one, headers.getall(X_API_KEY, ())


def remembered(raw):
    # ruleid: nothing-is-unpickled
    pickle.loads(raw)
    # ruleid: nothing-is-unpickled
    aiocache.serializers.PickleSerializer()
    # ok: nothing-is-unpickled
    return aiocache.serializers.NullSerializer()


def cache():
    # ruleid: aiocache-is-an-interface-only
    aiocache.SimpleMemoryCache()
    # ruleid: aiocache-is-an-interface-only
    aiocache.cached(ttl=1)
    # ok: aiocache-is-an-interface-only
    return aiocache.base.BaseCache()


def say(log, error):
    # ruleid: tracebacks-are-told-by-their-places
    log.error("failed", exc_info=True)
    # ruleid: tracebacks-are-told-by-their-places
    traceback.print_exc()
    # ok: tracebacks-are-told-by-their-places
    return traceback.extract_tb(error.__traceback__)


def serve(runner, server):
    # ruleid: calls-run-on-when-the-caller-leaves
    runner(server, handler_cancellation=True)
    # ok: calls-run-on-when-the-caller-leaves
    runner(server, handler_cancellation=False)


def mint():
    # ruleid: secrets-are-not-drawn-from-a-guessable-source
    random.randbytes(32)
    # ok: secrets-are-not-drawn-from-a-guessable-source
    return secrets.token_bytes(32)
