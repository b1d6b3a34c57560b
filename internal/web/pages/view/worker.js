// SPDX-License-Identifier: Apache-2.0
// Keeps the service worker, which shows notifications and a page without a network.
addEventListener('load', () => navigator.serviceWorker?.register('/service-worker.js', {updateViaCache: 'none'}).catch(() => {}))
