// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"crypto/rand"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/retention"
)

// makeRetention makes the service that keeps stored documents and renews their signatures.
func (m *serverMaker) makeRetention(context.Context) error {
	m.retention = &retention.Service{
		Store: store.Retentions{DB: m.DB}, Documents: m.documents, Operations: m.Operations, Signer: m.signer, Events: m.Messages,
		Services: m.timeStampServices, Now: m.DB.Now, Rand: rand.Reader, Settings: m.Config.Retention.Settings(),
		Failed: func(err error) { m.log.Error("renewing archive time stamps", "error", err) },
	}
	m.server.retention = m.retention
	return m.Operations.Add(m.retention.OperationKind())
}

// timeStampServices returns the addresses of the registered services in their order.
func (b *Base) timeStampServices(ctx context.Context) (list []string, err error) {
	services, err := b.Policies.TSPServices(ctx)
	for _, t := range services {
		list = append(list, t.URL)
	}
	return list, err
}
