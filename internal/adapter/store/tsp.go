// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"

	"tamga/internal/domain/policy"
)

// maxTSPServices bounds the read. It is higher than the number of services that the
// policy allows, so it is not a rule of the domain.
const maxTSPServices = 1000

// TSPServices implements policy.Store.
func (s Policies) TSPServices(ctx context.Context) ([]policy.TSPService, error) {
	return all(ctx, s.DB, func(r row) (t policy.TSPService, err error) {
		err = r.Scan(&t.Name, &t.Title, &t.URL, &t.Class, &t.Policy, &t.PerMinute)
		return t, err
	}, `SELECT name, title, url, class, policy, per_minute FROM tsp_services ORDER BY id LIMIT $1`, maxTSPServices)
}

// AddTSPService implements policy.Store.
func (s Policies) AddTSPService(ctx context.Context, t policy.TSPService, normal string) (bool, error) {
	n, err := s.exec(ctx, `INSERT INTO tsp_services
			(name, title, url, normal_url, class, policy, per_minute)
		VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING`,
		t.Name, t.Title, t.URL, normal, t.Class, t.Policy, t.PerMinute)
	return n == 1, err
}

// RemoveTSPService implements policy.Store.
func (s Policies) RemoveTSPService(ctx context.Context, name string) (bool, error) {
	n, err := s.exec(ctx, `DELETE FROM tsp_services WHERE name = $1`, name)
	return n == 1, err
}
