// The gateway's work for clients, in Fastify with undici. Arguments: its port, the backend's.
// /uncached asks each time; /cached remembers what each level sees.
import { randomUUID } from 'node:crypto'
import Fastify from 'fastify'
import rateLimit from '@fastify/rate-limit'
import fastJson from 'fast-json-stringify'
import { Pool } from 'undici'

const [port, backend] = process.argv.slice(2).map(Number)
const keys = new Map([
  ['vk_peers', { level: 'STANDARD', limit: 1e9, permission: 'CLIENT_READ' }],
  ['vk_unpermitted', { level: 'STANDARD', limit: 1e9, permission: 'STOCK_READ' }],
  ['vk_small', { level: 'STANDARD', limit: 5, permission: 'CLIENT_READ' }]
])
const pool = new Pool(`http://127.0.0.1:${backend}`, { connections: 128 })
const open = {
  BASIC: ['id', 'firstName', 'lastName'],
  STANDARD: ['id', 'firstName', 'lastName', 'phone', 'email', 'createdAt', 'updatedAt']
}
const app = Fastify({ logger: false })
const refuse = (reply, status, message) => reply.code(status).send({ message })

app.addHook('onRequest', (request, reply, done) => {
  const secret = request.headers['x-api-key']
  if (secret === undefined) return refuse(reply, 401, 'Authentication required')
  const key = keys.get(secret)
  if (key === undefined) return refuse(reply, 401, 'Invalid or expired API key')
  if (key.permission !== 'CLIENT_READ') return refuse(reply, 403, 'Insufficient permissions')
  request.level = key.level
  reply.headers({
    'x-request-id': randomUUID(),
    'cache-control': 'private, no-store',
    vary: 'X-API-Key',
    'x-content-type-options': 'nosniff',
    'x-access-level': key.level,
    'content-type': 'application/json'
  })
  done()
})
await app.register(rateLimit, {
  hook: 'preHandler',
  timeWindow: 3600000,
  keyGenerator: request => request.headers['x-api-key'],
  max: (request, secret) => keys.get(secret).limit,
  errorResponseBuilder: (request, { ttl }) => ({
    statusCode: 429,
    message: 'Rate limit exceeded. Please try again later.',
    retryAfter: Math.ceil(ttl / 1000)
  })
})

// What a level's schema does not name is not written: the filter is compiled once.
const text = { type: 'string', nullable: true }
const writers = Object.fromEntries(Object.entries(open).map(([level, names]) => {
  const record = { type: 'object', properties: Object.fromEntries(names.map(name => [name, text])) }
  return [level, { one: fastJson(record), many: fastJson({ type: 'array', items: record }) }]
}))

async function ask (request, reply, path, shape) {
  const { statusCode, body } = await pool.request({ method: 'GET', path })
  if (statusCode === 200) return writers[request.level][shape](await body.json())
  await body.dump()
  if (statusCode === 404) return refuse(reply, 404, 'Resource not found')
  return refuse(reply, 502, 'The practice system gave an unusable answer')
}

const answers = new Map()
async function remember (request, reply, path, shape) {
  const name = request.level + path
  const found = answers.get(name)
  if (found !== undefined && found.until > Date.now()) return found.body
  const body = await ask(request, reply, path, shape)
  if (body !== reply) answers.set(name, { body, until: Date.now() + 3600000 })
  return body
}

const id = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
for (const [prefix, answer] of [['/uncached', ask], ['/cached', remember]]) {
  const path = request => request.url.slice(prefix.length)
  app.get(`${prefix}/clients/:id`, (request, reply) => id.test(request.params.id)
    ? answer(request, reply, path(request), 'one')
    : refuse(reply, 400, 'Invalid request'))
  app.get(`${prefix}/clients`, (request, reply) => answer(request, reply, path(request), 'many'))
}
await app.listen({ port, host: '127.0.0.1' })
