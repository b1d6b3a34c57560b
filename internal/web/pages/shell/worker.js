// SPDX-License-Identifier: Apache-2.0
// The service worker of the pages. version and notes are before this text.

const at = path => new URL(path, self.registration.scope).href
const language = () => navigator.languages.map(l => l.slice(0, 2)).find(l => l in notes.offline) ?? Object.keys(notes.offline)[0]

// The shell has no person in it: cookies are left out.
self.addEventListener('install', event => event.waitUntil((async () => {
  const cache = await caches.open(version)
  await cache.addAll(notes.shell.map(path => new Request(at(path), {credentials: 'omit', cache: 'reload'})))
  await self.skipWaiting()
})()))

// What an older version kept is deleted. Pages that are open go on with this version: they need nothing of the older one.
self.addEventListener('activate', event => event.waitUntil((async () => {
  for (const name of await caches.keys()) {
    if (name !== version) await caches.delete(name)
  }
  await self.clients.claim()
})()))

self.addEventListener('fetch', event => {
  const request = event.request
  if (request.method !== 'GET') return
  if (request.mode === 'navigate') {
    event.respondWith(fetch(request).catch(async () => {
      const cache = await caches.open(version)
      return await cache.match(at(notes.offline[language()])) ?? Response.error()
    }))
  } else if (notes.shell.some(path => at(path) === request.url)) {
    event.respondWith((async () => {
      const cache = await caches.open(version)
      return await cache.match(request.url) ?? fetch(request)
    })())
  }
})

// inside returns the address of a page of ours, "" for others.
const inside = path => {
  if (typeof path !== 'string' || !path.startsWith('/') || path.startsWith('//')) return ''
  const to = new URL(at(path.slice(1)))
  return to.href.startsWith(self.registration.scope) ? to.href : ''
}

self.addEventListener('push', event => event.waitUntil((async () => {
  let message = {}
  try {
    message = event.data.json()
  } catch { /* a message must be shown all the same */ }
  const to = inside(message.path)
  const open = await self.clients.matchAll({type: 'window', includeUncontrolled: true})
  if (to && open.some(c => c.focused && c.url.split('#')[0] === to)) return // the person is looking at it
  await self.registration.showNotification(message.title || notes.title, {
    body: message.text || notes.waits[language()], tag: message.id, icon: at(notes.icon), data: {to: to || at('confirm')},
  })
})()))

self.addEventListener('notificationclick', event => {
  event.notification.close()
  const to = event.notification.data?.to ?? at('confirm')
  event.waitUntil((async () => {
    const open = await self.clients.matchAll({type: 'window', includeUncontrolled: true})
    const there = open.find(c => c.url.split('#')[0] === to)
    if (there) return there.focus()
    return self.clients.openWindow(to)
  })())
})
